"""Every object, with the one number that grows: what the API server keeps in etcd.

Each write has a version of its own. Past writes are kept for watches that come late, up to a point; who comes from
before that point is told that his version has expired, as after a compaction of etcd.
"""

import asyncio
import copy
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from adapter.fakecluster.kinds import Json

Resource: TypeAlias = tuple[str, str]
Name: TypeAlias = tuple[str, str]
"""Namespace and name."""

_MOST_REMEMBERED: Final = 50_000


class Write(NamedTuple):
    """One thing that happened."""

    version: int
    resource: Resource
    before: Json | None
    after: Json | None


@dataclass(eq=False)
class Subscription:
    """Whoever wants to hear of writes; None in the queue: nothing more will come."""

    resource: Resource | None
    writes: asyncio.Queue[Write | None]


class Shelf:
    """The objects."""

    def __init__(self) -> None:
        self.version = 100
        self.oldest = 100
        """From here on every write is remembered."""
        self._objects: dict[Resource, dict[Name, Json]] = {}
        self._past: deque[Write] = deque()
        self._subscriptions: set[Subscription] = set()

    def get(self, resource: Resource, name: Name) -> Json | None:
        """Find an object; it belongs to the shelf and must not be changed."""
        return self._objects.get(resource, {}).get(name)

    def all(self, resource: Resource) -> list[Json]:
        """List the objects of a resource by name."""
        return [thing for _, thing in sorted(self._objects.get(resource, {}).items())]

    def put(self, resource: Resource, name: Name, content: Json) -> Json:
        """Keep an object under the next version; keeping what is already there is nothing new."""
        objects = self._objects.setdefault(resource, {})
        before = objects.get(name)
        if before is not None and _same(before, content):
            return before
        kept = copy.deepcopy(content)
        self.version += 1
        kept["metadata"]["resourceVersion"] = str(self.version)
        objects[name] = kept
        self._tell(Write(self.version, resource, before, kept))
        return kept

    def remove(self, resource: Resource, name: Name) -> Json | None:
        """Drop an object; its last version is that of its end."""
        before = self._objects.get(resource, {}).pop(name, None)
        if before is None:
            return None
        self.version += 1
        last = copy.deepcopy(before)
        last["metadata"]["resourceVersion"] = str(self.version)
        self._tell(Write(self.version, resource, last, None))
        return last

    def since(self, version: int) -> Iterator[Write]:
        """Go through what happened after a version."""
        return (write for write in tuple(self._past) if write.version > version)

    def subscribe(self, resource: Resource | None = None) -> Subscription:
        """Hear of every write from now on, of one resource or of all."""
        subscription = Subscription(resource, asyncio.Queue())
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Hear no more."""
        self._subscriptions.discard(subscription)

    def hang_up(self) -> None:
        """End every watch; their clients will come again."""
        for subscription in self.watching():
            subscription.writes.put_nowait(None)

    def watching(self) -> tuple[Subscription, ...]:
        """List the watches that are open."""
        return tuple(one for one in self._subscriptions if one.resource is not None)

    def compact(self) -> None:
        """Forget the past: nobody can go on from any version before now."""
        self.version += 1
        self.oldest = self.version
        self._past.clear()

    def _tell(self, write: Write) -> None:
        self._past.append(write)
        if len(self._past) > _MOST_REMEMBERED:
            self.oldest = self._past.popleft().version
        for subscription in self._subscriptions:
            if subscription.resource in {None, write.resource}:
                subscription.writes.put_nowait(write)


def _same(before: Json, after: Json) -> bool:
    """Compare two states but for the version, which the second does not have yet."""
    return _unversioned(before) == _unversioned(after)


def _unversioned(content: Json) -> Json:
    metadata = {key: value for key, value in content["metadata"].items() if key != "resourceVersion"}
    return {**content, "metadata": metadata}

"""Versioned object storage, the counterpart of etcd.

Every write increments the resource version. Past writes are stored for watches, up to a limit; a watch that starts
before the oldest stored write fails with 410, as after a compaction of etcd.
"""

import asyncio
import copy
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from adapter.fakecluster.kinds import Json

Resource: TypeAlias = tuple[str, str]
"""Group and plural name."""

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""

_MAX_PAST_WRITES: Final = 50_000


class Write(NamedTuple):
    """One change of one object."""

    version: int
    resource: Resource
    before: Json | None
    after: Json | None


@dataclass(eq=False)
class Subscription:
    """A queue of writes; None in the queue ends the watch."""

    resource: Resource | None
    writes: asyncio.Queue[Write | None]


class Storage:
    """All objects, by resource and key."""

    def __init__(self) -> None:
        self.version = 100
        self.oldest = 100
        """The oldest version from which a watch can start."""
        self._objects: dict[Resource, dict[Key, Json]] = {}
        self._past: deque[Write] = deque()
        self._subscriptions: set[Subscription] = set()

    def get(self, resource: Resource, key: Key) -> Json | None:
        """Return a stored object; the caller must not change it."""
        return self._objects.get(resource, {}).get(key)

    def list(self, resource: Resource) -> list[Json]:
        return [content for _, content in sorted(self._objects.get(resource, {}).items())]

    def put(self, resource: Resource, key: Key, content: Json) -> Json:
        """Store an object under the next version; a write that changes nothing gets no new version."""
        objects = self._objects.setdefault(resource, {})
        before = objects.get(key)
        if before is not None and _without_version(before) == _without_version(content):
            return before
        stored = copy.deepcopy(content)
        self.version += 1
        stored["metadata"]["resourceVersion"] = str(self.version)
        objects[key] = stored
        self._publish(Write(self.version, resource, before, stored))
        return stored

    def remove(self, resource: Resource, key: Key) -> Json | None:
        """Remove an object and return its last state, with the version of the removal."""
        before = self._objects.get(resource, {}).pop(key, None)
        if before is None:
            return None
        self.version += 1
        last = copy.deepcopy(before)
        last["metadata"]["resourceVersion"] = str(self.version)
        self._publish(Write(self.version, resource, last, None))
        return last

    def since(self, version: int) -> Iterator[Write]:
        return (write for write in tuple(self._past) if write.version > version)

    def subscribe(self, resource: Resource | None = None) -> Subscription:
        """Subscribe to the writes from now on, of one resource or of all."""
        subscription = Subscription(resource, asyncio.Queue())
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)

    def close_watches(self) -> None:
        """End every watch; clients can resume from the last version."""
        for subscription in self._subscriptions:
            if subscription.resource is not None:
                subscription.writes.put_nowait(None)

    def compact(self) -> None:
        """Drop all past writes, so that no watch can resume from an earlier version."""
        self.version += 1
        self.oldest = self.version
        self._past.clear()

    def _publish(self, write: Write) -> None:
        self._past.append(write)
        if len(self._past) > _MAX_PAST_WRITES:
            self.oldest = self._past.popleft().version
        for subscription in self._subscriptions:
            if subscription.resource in {None, write.resource}:
                subscription.writes.put_nowait(write)


def _without_version(content: Json) -> Json:
    metadata = {key: value for key, value in content["metadata"].items() if key != "resourceVersion"}
    return {**content, "metadata": metadata}

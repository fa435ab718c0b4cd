"""The watched objects of one collection, in memory, and word of every key that changed.

Only what `keep` makes of an object is held, so a store of pods holds no pod specs. What this process wrote is learned
at once from the answer to the write; when the watch then tells of it, that is no news. So nobody acts on a state that
he has already changed himself, and nobody is woken by his own doing.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from datetime import timedelta
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError, TooManyRequests, Unavailable
from autoscaler.kube.watch import Happened, Listing, Trouble, Watched, attend

log = logging.getLogger(__name__)

T = TypeVar("T")


class _Kept(NamedTuple, Generic[T]):
    version: str
    thing: T


class Store(Generic[T]):
    """A collection as last heard of. Run it beside whoever reads it."""

    def __init__(self, client: KubeClient, watched: Watched, keep: Callable[[Json], T | None]) -> None:
        self._client = client
        self._watched = watched
        self._keep = keep
        self._kept: dict[str, _Kept[T]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._writing: dict[str, bool] = {}
        """The keys that are being written by us, and whether news of them came meanwhile."""
        self._ours: dict[str, str] = {}
        """The version that our last write gave to each of those."""
        self._unheard: set[str] = set()
        """What we wrote and the watch has not told of yet: a list that was under way meanwhile may be older."""
        self._settled = asyncio.Event()
        self._trouble: KubeError | None = None
        self.changes = 0
        """Grows with every change, so that what was computed from a store is known to be still true."""

    @property
    def is_complete(self) -> bool:
        """Whether everything there is was heard of, and changes still may be."""
        return self._settled.is_set() and self._trouble is None

    @property
    def trouble(self) -> KubeError | None:
        """Why this may not be heard, if so."""
        return self._trouble

    async def settled(self, within: timedelta) -> bool:
        """Wait until everything was heard of once, or is known to be refused; say whether it was heard of."""
        try:
            async with asyncio.timeout(within.total_seconds()):
                await self._settled.wait()
        except TimeoutError:
            return False
        return self.is_complete

    def get(self, key: str) -> T | None:
        """Find an object by ``namespace/name``; None if there is none."""
        kept = self._kept.get(key)
        return None if kept is None else kept.thing

    def keys(self) -> tuple[str, ...]:
        """List what there is."""
        return tuple(self._kept)

    def __iter__(self) -> Iterator[T]:
        return iter([kept.thing for kept in self._kept.values()])

    def __len__(self) -> int:
        return len(self._kept)

    def tell(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with the key of each object that appears, changes or goes; at once with those known.

        Gives back what ends that.
        """
        self._listeners.append(listener)
        for key in self.keys():
            listener(key)
        return partial(self._listeners.remove, listener)

    @contextmanager
    def writing(self, key: str) -> Iterator[None]:
        """Tell nobody of a key while it is written in the block, unless more than that happens to it.

        The watch may tell of a write before its answer has come.
        """
        self._writing[key] = False
        try:
            yield
        finally:
            heard, ours = self._writing.pop(key), self._ours.pop(key, None)
            known = self._kept.get(key)
            if heard and (known is None or known.version != ours):
                self._announce(key)

    def learn(self, content: Json) -> T | None:
        """Take in the answer to a write of our own, and tell nobody; give what was kept of it."""
        thing = self._keep(content)
        if thing is not None:
            self.hold(key_of(content), version_of(content), thing)
        return thing

    def hold(self, key: str, version: str, thing: T) -> None:
        """Hold what is known to be true as of `version`, unless something later is known."""
        known = self._kept.get(key)
        if known is None or not _is_older(version, known.version):
            self._kept[key] = _Kept(version, thing)
            self._unheard.add(key)
            self.changes += 1
        if key in self._writing:
            self._ours[key] = version

    async def run(self) -> None:
        """Keep up with the collection until cancelled."""
        async with aclosing(attend(self._client, self._watched)) as news:
            async for one in news:
                if isinstance(one, Trouble):
                    self._stumble(one.error)
                elif isinstance(one, Listing):
                    self._replace(one)
                else:
                    self._change(one.happened, one.object)

    def _stumble(self, error: KubeError) -> None:
        """Remember a refusal: what is kept will not be kept up to date. A server that is busy has refused nothing."""
        if not isinstance(error, Unavailable | TooManyRequests):
            self._trouble = error
            self._settled.set()

    def _replace(self, listing: Listing) -> None:
        self._trouble = None
        listed = {key_of(content): content for content in listing.objects}
        for key in self.keys():
            if key not in listed:
                self._forget(key)
        for key, content in listed.items():
            if key not in self._unheard or not self._is_behind(content):
                self._accept(content)
        self._settled.set()

    def _change(self, happened: Happened, content: Json) -> None:
        key = key_of(content)
        if happened is Happened.DELETED:
            self._forget(key)
            return
        if not self._is_behind(content):
            self._accept(content)

    def _is_behind(self, content: Json) -> bool:
        known = self._kept.get(key_of(content))
        return known is not None and _is_older(version_of(content), known.version)

    def _accept(self, content: Json) -> None:
        key, version = key_of(content), version_of(content)
        known = self._kept.get(key)
        self._unheard.discard(key)
        if known is not None and known.version == version:
            return
        thing = self._keep(content)
        if thing is None:
            self._forget(key)
        else:
            self._kept[key] = _Kept(version, thing)
            self.changes += 1
            self._announce(key)

    def _forget(self, key: str) -> None:
        self._unheard.discard(key)
        if self._kept.pop(key, None) is not None:
            self.changes += 1
            self._announce(key)

    def _announce(self, key: str) -> None:
        if key in self._writing:
            self._writing[key] = True
            return
        for listener in self._listeners:
            listener(key)


def key_of(content: Json) -> str:
    """Say what an object is called: ``namespace/name``, or its name where it has no namespace."""
    metadata = content["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def version_of(content: Json) -> str:
    """Give an object's resourceVersion."""
    return str(content["metadata"]["resourceVersion"])


def _is_older(version: str, known: str) -> bool:
    """Compare versions of one kind, which Kubernetes promises to be numbers that grow; others are never older."""
    return version.isdigit() and known.isdigit() and int(version) < int(known)

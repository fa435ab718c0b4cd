"""Informer: keeps the objects of a collection in memory with a list and watch, and notifies listeners of changes.

Only the result of ``transform`` is stored, so an informer for pods does not hold pod specs. The response to an own
write is applied to the store at once, and the watch event of the same write does not notify listeners. The controller
therefore never reconciles against a state that it has already changed, and is not triggered by its own writes.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from datetime import timedelta
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError, MalformedResponse, TooManyRequests, Unavailable, describe
from autoscaler.kube.freshness import MAX_AGE, Freshness
from autoscaler.kube.freshness_check import check_freshness
from autoscaler.kube.invalid_objects import InvalidObject, InvalidObjectLog
from autoscaler.kube.objects import (
    ObjectList,
    check_object,
    decode_response,
    is_older,
    key_of,
    resource_version_of,
    uid_of,
)
from autoscaler.kube.watch import ListWatch, WatchEventType, list_and_watch

log = logging.getLogger(__name__)

T = TypeVar("T")


class _Stored(NamedTuple, Generic[T]):
    resource_version: str
    uid: str
    value: T


class Informer(Generic[T]):
    """The store of one collection, updated while `run` is running."""

    def __init__(self, client: KubeClient, source: ListWatch, transform: Callable[[Json], T | None]) -> None:
        self._client = client
        self._source = source
        self._transform = transform
        self._store: dict[str, _Stored[T]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._deferred: dict[str, bool] = {}
        """Keys with an own write in progress, and whether a change arrived during it."""
        self._own_versions: dict[str, str] = {}
        """The resourceVersion that the own write in progress resulted in, by key."""
        self._unconfirmed: set[str] = set()
        """Keys written by this process whose watch event has not arrived: a concurrent list may be older."""
        self._list_done = asyncio.Event()
        self._invalid = InvalidObjectLog(source.resource, client.metrics)
        self.freshness = Freshness(source.resource, client.now)
        client.metrics.watches.add(self.freshness)
        self.error: KubeError | None = None
        """Why the collection cannot be listed or watched; None for temporary failures."""

    @property
    def is_synced(self) -> bool:
        """Whether the store is complete and is kept up to date."""
        return self._list_done.is_set() and not self.problem

    @property
    def problem(self) -> str:
        """Why the store is not up to date, for messages; empty if it is."""
        if self.error is not None:
            return f"{self._source.resource} cannot be watched: {self.error}"
        if self._list_done.is_set() and self.freshness.is_stale:
            limit = f"{MAX_AGE.total_seconds():.0f}s"
            return f"{self._source.resource} are out of date: no complete state is known for more than {limit}"
        return ""

    async def wait_for_sync(self, timeout: timedelta) -> bool:  # noqa: ASYNC109 - returns False instead of raising
        """Wait until the first list has succeeded or was rejected; return whether the informer is synced."""
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await self._list_done.wait()
        except TimeoutError:
            return False
        return self.is_synced

    def get(self, key: str) -> T | None:
        """Return the object with the key ``namespace/name``; None if it does not exist."""
        stored = self._store.get(key)
        return None if stored is None else stored.value

    def keys(self) -> tuple[str, ...]:
        return tuple(self._store)

    def __iter__(self) -> Iterator[T]:
        return iter([stored.value for stored in self._store.values()])

    def add_listener(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call ``listener`` with the key of each added, changed or deleted object, and now with all known keys.

        Returns the function that removes the listener.
        """
        self._listeners.append(listener)
        for key in self.keys():
            self._call(listener, key)
        return partial(self._listeners.remove, listener)

    @contextmanager
    def own_write(self, key: str) -> Iterator[None]:
        """Suppress notifications for a key that this process writes in the block, unless another write changes it.

        The watch event of a write may arrive before its response.
        """
        self._deferred[key] = False
        try:
            yield
        finally:
            changed, own_version = self._deferred.pop(key), self._own_versions.pop(key, None)
            stored = self._store.get(key)
            if changed and (stored is None or stored.resource_version != own_version):
                self._notify(key)

    def apply_response(self, content: Json) -> T | None:
        """Store the response to an own write without notifying listeners; return the object, None if it is invalid."""
        checked = check_object(content)
        if isinstance(checked, InvalidObject):
            self._invalid.report(checked)
            return None
        value = self._transformed(checked)
        if value is not None:
            self.apply_write(key_of(checked), uid_of(checked), resource_version_of(checked), value)
        return value

    def apply_write(self, key: str, uid: str, resource_version: str, value: T) -> None:
        """Store the result of an own write, unless the object was deleted meanwhile or a newer version is known."""
        stored = self._store.get(key)
        if stored is not None and stored.uid == uid and not is_older(resource_version, stored.resource_version):
            self._store[key] = _Stored(resource_version, uid, value)
            self._unconfirmed.add(key)
        if key in self._deferred:
            self._own_versions[key] = resource_version

    async def run(self) -> None:
        """Update the store until cancelled."""
        async with asyncio.TaskGroup() as group:
            checking = group.create_task(check_freshness(self._client, self._source, self.freshness))
            try:
                await self._follow()
            finally:
                checking.cancel()

    async def _follow(self) -> None:
        changes = list_and_watch(
            self._client,
            self._source,
            on_error=self._handle_error,
            on_invalid=self._handle_invalid,
            reduce=self._reduce,
            freshness=self.freshness,
        )
        async with aclosing(changes) as items:
            async for item in items:
                if isinstance(item, ObjectList):
                    self._replace(item)
                elif item.type is WatchEventType.DELETED:
                    self._delete(key_of(item.object))
                elif not self._is_outdated(key_of(item.object), resource_version_of(item.object)):
                    self._update(*self._reduce(item.object))
                del item  # may be large, and the next event may be far

    def _handle_error(self, error: KubeError) -> None:
        """Record a permanent error: the store is no longer kept up to date. A busy server is a temporary error."""
        if not isinstance(error, Unavailable | TooManyRequests):
            self.error = error
            self._list_done.set()

    def _handle_invalid(self, invalid: InvalidObject) -> None:
        """Report an invalid object and remove its last valid version, which is outdated."""
        self._invalid.report(invalid)
        if invalid.key:
            self._delete(invalid.key)

    def _replace(self, object_list: ObjectList) -> None:
        self.error = None
        if self.freshness.went_back:
            self._unconfirmed.clear()  # the cluster was restored from a backup: own writes may be lost
        listed = dict[str, _Stored[T | None]](object_list.objects)
        for key in self.keys():
            if key not in listed:
                self._delete(key)
        for key, new in listed.items():
            if key not in self._unconfirmed or not self._is_outdated(key, new.resource_version):
                self._update(key, new)
        self._list_done.set()

    def _is_outdated(self, key: str, resource_version: str) -> bool:
        stored = self._store.get(key)
        return stored is not None and is_older(resource_version, stored.resource_version)

    def _reduce(self, content: Json) -> "tuple[str, _Stored[T | None]]":
        """Return the key of an object and what to store; the value is None if it cannot be transformed."""
        key, resource_version, uid = key_of(content), resource_version_of(content), uid_of(content)
        stored = self._store.get(key)
        is_stored = stored is not None and (stored.resource_version, stored.uid) == (resource_version, uid)
        value = stored.value if stored is not None and is_stored else self._transformed(content)
        return key, _Stored(resource_version, uid, value)

    def _update(self, key: str, new: "_Stored[T | None]") -> None:
        stored = self._store.get(key)
        self._unconfirmed.discard(key)
        if stored is not None and (stored.resource_version, stored.uid) == (new.resource_version, new.uid):
            return
        if new.value is None:
            self._delete(key)
        else:
            self._store[key] = _Stored(new.resource_version, new.uid, new.value)
            self._notify(key)

    def _transformed(self, content: Json) -> T | None:
        """Return the transformed object; None if that fails, whatever the object contains."""
        try:
            return decode_response("object", self._transform, content)
        except MalformedResponse as error:
            self._invalid.report(InvalidObject(key_of(content), str(error)))
            return None

    def _delete(self, key: str) -> None:
        self._unconfirmed.discard(key)
        if self._store.pop(key, None) is not None:
            self._notify(key)

    def _notify(self, key: str) -> None:
        if key in self._deferred:
            self._deferred[key] = True
            return
        for listener in tuple(self._listeners):
            self._call(listener, key)

    def _call(self, listener: Callable[[str], None], key: str) -> None:
        """Call a listener; its failure for one object must not end the watch of all others."""
        try:
            listener(key)
        except Exception as error:
            log.exception("listener failed", extra={"path": self._source.path, "object": key})
            self._invalid.report(InvalidObject(key, describe(error)))

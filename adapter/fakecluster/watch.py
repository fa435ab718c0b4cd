"""Watch requests: past writes since a resource version, then live writes until the timeout, as JSON lines."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Final

from adapter.fakecluster import api_errors
from adapter.fakecluster.kinds import Json, Kind, ResourcePath
from adapter.fakecluster.object_reader import Selection, as_version
from adapter.fakecluster.storage import Storage, Subscription, Write

_BOOKMARK_INTERVAL: Final = 60.0
_LAST_BOOKMARK: Final = 2.0
"""Seconds before the end of a watch at which a bookmark is sent."""

_DEFAULT_TIMEOUT: Final = 1800.0
_RESOLUTION: Final = 0.001
"""Seconds; a virtual clock may not advance by less."""


async def watch(storage: Storage, path: ResourcePath, query: Mapping[str, str]) -> AsyncGenerator[bytes]:
    kind, selection, since = path.kind, Selection(path, query), _parse_version(query)
    subscription = storage.subscribe(kind.resource)
    try:
        if since is not None and since < storage.oldest:
            message = f"too old resource version: {since} ({storage.oldest})"
            yield _encode("ERROR", api_errors.ApiError(410, "Expired", message).status())
            return
        if since is None:
            past = [_event("ADDED", kind, one) for one in storage.list(kind.resource) if selection.matches(one)]
        else:
            writes = (write for write in storage.since(since) if write.resource == kind.resource)
            past = [line for write in writes if (line := _event_for(write, kind, selection))]
        for line in past:
            yield line
        async for line in _live(storage, subscription, kind, selection, query):
            yield line
    finally:
        storage.unsubscribe(subscription)


async def _live(
    storage: Storage, subscription: Subscription, kind: Kind, selection: Selection, query: Mapping[str, str]
) -> AsyncGenerator[bytes]:
    loop = asyncio.get_running_loop()
    end = loop.time() + float(query.get("timeoutSeconds") or _DEFAULT_TIMEOUT)
    has_bookmarks = query.get("allowWatchBookmarks") in {"true", "1"}
    next_bookmark = _next_bookmark(loop.time(), end)
    while (remaining := end - loop.time()) > _RESOLUTION:
        try:
            async with asyncio.timeout(min(remaining, max(next_bookmark - loop.time(), 0))):
                write = await subscription.writes.get()
        except TimeoutError:
            if loop.time() + _RESOLUTION < next_bookmark:
                continue
            next_bookmark = _next_bookmark(loop.time(), end)
            if has_bookmarks:
                metadata = {"resourceVersion": str(storage.version)}
                yield _encode("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata})
            continue
        if write is None:
            return
        if line := _event_for(write, kind, selection):
            yield line


def _next_bookmark(now: float, end: float) -> float:
    """Return the time of the next bookmark: after a minute, or shortly before the end of the watch."""
    last = end - _LAST_BOOKMARK
    return min(now + _BOOKMARK_INTERVAL, last) if now + _RESOLUTION < last else end + 1


def _parse_version(query: Mapping[str, str]) -> int | None:
    version = query.get("resourceVersion", "")
    if version in {"", "0"}:
        return None
    if not version.isdigit():
        raise api_errors.ApiError(400, "BadRequest", f"Invalid value: {json.dumps(version)}: not a resource version")
    return int(version)


def _event_for(write: Write, kind: Kind, selection: Selection) -> bytes | None:
    """Return the event for a write; an object that no longer matches the selection is reported as deleted."""
    matched, matches = selection.matches(write.before), selection.matches(write.after)
    if write.after is not None and matches:
        return _event("MODIFIED" if matched else "ADDED", kind, write.after)
    if write.before is not None and matched:
        metadata = {**write.before["metadata"], "resourceVersion": str(write.version)}
        return _event("DELETED", kind, {**write.before, "metadata": metadata})
    return None


def _event(event_type: str, kind: Kind, content: Json) -> bytes:
    return _encode(event_type, as_version(kind, content))


def _encode(event_type: str, content: Json) -> bytes:
    return json.dumps({"type": event_type, "object": content}).encode() + b"\n"

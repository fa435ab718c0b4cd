"""Watches: what happened since a version, and then what happens, line by line until the time is over."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Final

from adapter.fakecluster import api_errors
from adapter.fakecluster.kinds import Json, Kind
from adapter.fakecluster.reads import Selection, served
from adapter.fakecluster.resource_path import Place
from adapter.fakecluster.storage import Shelf, Subscription, Write

_BOOKMARK_EVERY: Final = 60.0
_DEFAULT_LENGTH: Final = 1800.0


async def watch(shelf: Shelf, place: Place, query: Mapping[str, str]) -> AsyncGenerator[bytes]:
    """Yield the lines of a watch."""
    selection, since = Selection(place, query), _since(query)
    subscription = shelf.subscribe(place.kind.resource)
    try:
        if since is None:
            past = [_line("ADDED", place.kind, one) for one in shelf.all(place.kind.resource) if selection.has(one)]
        elif since < shelf.oldest:
            past = [_encoded("ERROR", api_errors.too_old(since, shelf.oldest).status())]
        else:
            writes = (write for write in shelf.since(since) if write.resource == place.kind.resource)
            past = [line for write in writes if (line := _told(write, place.kind, selection))]
        for line in past:
            yield line
        if since is not None and since < shelf.oldest:
            return
        async for line in _live(shelf, subscription, place.kind, selection, query):
            yield line
    finally:
        shelf.unsubscribe(subscription)


async def _live(
    shelf: Shelf, subscription: Subscription, kind: Kind, selection: Selection, query: Mapping[str, str]
) -> AsyncGenerator[bytes]:
    loop = asyncio.get_running_loop()
    end = loop.time() + float(query.get("timeoutSeconds") or _DEFAULT_LENGTH)
    marks = query.get("allowWatchBookmarks") in {"true", "1"}
    while (left := end - loop.time()) > 0:
        try:
            async with asyncio.timeout(min(left, _BOOKMARK_EVERY)):
                write = await subscription.writes.get()
        except TimeoutError:
            if marks:
                yield _bookmark(kind, shelf.version)
            continue
        if write is None:
            return
        if write.after is None and write.before is None:  # somebody asked for a bookmark
            if marks:
                yield _bookmark(kind, shelf.version)
        elif line := _told(write, kind, selection):
            yield line


def _since(query: Mapping[str, str]) -> int | None:
    version = query.get("resourceVersion", "")
    if version in {"", "0"}:
        return None
    if not version.isdigit():
        raise api_errors.Refused(400, "BadRequest", f"Invalid value: {json.dumps(version)}: not a resource version")
    return int(version)


def _told(write: Write, kind: Kind, selection: Selection) -> bytes | None:
    """Tell of a write as it looks to a selection: what no longer belongs to it is gone."""
    was, has = selection.has(write.before), selection.has(write.after)
    if write.after is not None and has:
        return _line("MODIFIED" if was else "ADDED", kind, write.after)
    if write.before is not None and was:
        last = write.before
        metadata = {**last["metadata"], "resourceVersion": str(write.version)}
        return _line("DELETED", kind, {**last, "metadata": metadata})
    return None


def _line(happened: str, kind: Kind, content: Json) -> bytes:
    return _encoded(happened, served(kind, content))


def _bookmark(kind: Kind, version: int) -> bytes:
    content = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"resourceVersion": str(version)}}
    return _encoded("BOOKMARK", content)


def _encoded(happened: str, content: Json) -> bytes:
    return json.dumps({"type": happened, "object": content}).encode() + b"\n"

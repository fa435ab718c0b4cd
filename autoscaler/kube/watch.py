"""Lists and watches a collection for as long as the caller iterates, like client-go's reflector.

The consumer receives an `ObjectList`, which replaces everything known before, and then `WatchEvent`s for single
objects. Bookmarks, invalid objects, expired resourceVersions, closed streams and server restarts are handled here.
`WatchDecoder` decodes the lines of the stream; it has no socket, so it can be tested line by line.
"""

import asyncio
import logging
import math
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import (
    Expired,
    KubeError,
    MalformedResponse,
    TooManyRequests,
    Unavailable,
    error_for_response,
)
from autoscaler.kube.freshness import Freshness
from autoscaler.kube.invalid_objects import InvalidObject, InvalidObjectLog
from autoscaler.kube.listing import ListWatch, list_objects
from autoscaler.kube.objects import ObjectList, check_object, decode_response, is_older, member, member_position

__all__ = ["ListWatch", "ObjectList", "WatchDecoder", "WatchEvent", "WatchEventType", "WatchItem", "list_and_watch"]

log = logging.getLogger(__name__)

_INITIAL_BACKOFF: Final = timedelta(milliseconds=800)
_MAX_BACKOFF: Final = timedelta(seconds=30)
_MIN_WATCH_SECONDS: Final = 1.0
"""A watch that ends sooner is treated as a failure: restarting it without backoff would flood the server."""

_WATCH_SECONDS: Final = (30, 45)
"""The duration of a watch. Two seconds before its end the server sends a bookmark, which confirms that no change was
missed. A random duration, as in client-go, keeps many watches from restarting at the same time."""

_GRACE_PERIOD: Final = timedelta(seconds=5)
"""The server closes a watch after timeoutSeconds. If it has not done so after this time, the connection is dead."""


class WatchEventType(StrEnum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


_EVENT_TYPES: Final = frozenset(each.value for each in WatchEventType)


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """A change of one object."""

    type: WatchEventType
    object: Json


WatchItem: TypeAlias = ObjectList | WatchEvent


@dataclass(slots=True)
class WatchDecoder:
    """Decodes the lines of a watch stream and tracks the resourceVersion from which to resume."""

    resource_version: str

    def decode(self, line: bytes) -> WatchEvent | InvalidObject | None:
        """Decode one line; return None for a bookmark.

        Raises a KubeError for an ERROR event, and Expired for a resourceVersion lower than that of an earlier line.
        """
        event_type, item = _type_and_object(line)
        if event_type == "ERROR":
            raise _error_of(item)
        if event_type == "BOOKMARK":
            metadata = item.get("metadata") if isinstance(item, dict) else None
            version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
            self._advance(version if isinstance(version, str) else "")
            return None
        checked = check_object(item)
        if isinstance(checked, InvalidObject):
            self._advance(checked.resource_version)
            return checked
        self._advance(checked["metadata"]["resourceVersion"])
        if event_type not in _EVENT_TYPES:
            return InvalidObject("", f"unknown type of watch event: {event_type[:64]!r}")
        return WatchEvent(WatchEventType(event_type), checked)

    def _advance(self, version: str) -> None:
        if is_older(version, self.resource_version):
            raise Expired(f"resourceVersion {version} is lower than {self.resource_version}, which was seen before")
        self.resource_version = version or self.resource_version


async def list_and_watch(
    client: KubeClient,
    source: ListWatch,
    *,
    on_error: Callable[[KubeError], None] = lambda _: None,
    on_invalid: Callable[[InvalidObject], None] | None = None,
    reduce: Callable[[Json], Any] = lambda content: content,
    freshness: Freshness | None = None,
    initial_backoff: timedelta = _INITIAL_BACKOFF,
) -> AsyncGenerator[WatchItem]:
    """Yield the list and then every change; retry failures without end, and report them only to ``on_error``.

    Invalid objects are reported to ``on_invalid``, by default to the log, and skipped. The list contains what
    ``reduce`` returns for each object, so that the objects need not fit into memory. ``initial_backoff`` is the delay
    before the first retry; it doubles with each failure in a row.
    """
    freshness = freshness or Freshness(source.resource, client.now)
    on_invalid = on_invalid or InvalidObjectLog(source.resource, client.metrics).report
    backoff, logged_error = initial_backoff, ""
    while True:
        retry_after, started = timedelta(), _now()
        try:
            if freshness.must_list:
                yield await list_objects(client, source, freshness, on_invalid, reduce)
                logged_error = ""
            async with aclosing(_watch(client, source, freshness, on_invalid)) as events:
                async for event in events:
                    backoff = initial_backoff
                    yield event
                    del event  # may be large, and the next event may be far
            if _now() - started > _MIN_WATCH_SECONDS:
                backoff = initial_backoff
                continue  # the server closed the watch after timeoutSeconds
        except Expired as error:
            log.info("listing again", extra={"path": source.path, "reason": str(error)})
            freshness.doubt()
        except KubeError as error:
            if logged_error != str(error):  # a persistent error, such as missing permissions, is logged once
                log.warning("watch failed", extra={"path": source.path, "error": str(error)})
            logged_error, retry_after = str(error), error.retry_after or retry_after
            on_error(error)
            if not isinstance(error, Unavailable | TooManyRequests):
                freshness.doubt()
        backoff = _next_backoff(backoff, initial_backoff, started)
        await asyncio.sleep(_delay(backoff, retry_after, freshness))


async def _watch(
    client: KubeClient, source: ListWatch, freshness: Freshness, on_invalid: Callable[[InvalidObject], None]
) -> AsyncGenerator[WatchEvent]:
    decoder = WatchDecoder(freshness.resource_version)
    spread = random.randint(*_WATCH_SECONDS)  # noqa: S311 - spreads load, not security
    # Without progress the watch ends when the collection must be listed again, which is before it is stale.
    duration = timedelta(seconds=min(spread, math.ceil(max(freshness.until_list, _MIN_WATCH_SECONDS + 1))))
    query = {
        **source.query(),
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": decoder.resource_version,
        "timeoutSeconds": str(duration.seconds),
    }
    async with aclosing(client.stream(source.path, query, duration + _GRACE_PERIOD)) as lines:
        async for line in lines:
            if line == b"":
                continue
            event = InvalidObject("", "the line is too long") if line is None else decoder.decode(line)
            freshness.progressed(decoder.resource_version)
            if isinstance(event, InvalidObject):
                on_invalid(event)
                if not event.key:
                    freshness.doubt()  # the change of an unknown object was missed: list again when the watch ends
            elif event is not None:
                yield event
            del event, line


def _type_and_object(line: bytes) -> tuple[str, object]:
    """Return type and object of a watch event.

    If the line cannot be decoded, its object is invalid. The rest of the line from the start of the object is then
    returned: its metadata is at the start, and finding its end would take long.
    """
    try:
        event = decode_response("watch event", msgspec.json.decode, line)
    except MalformedResponse:
        return member(line, "type").decode(errors="replace").strip('"'), line[member_position(line, "object") :]
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        return "", None
    return event["type"], event.get("object")


def _error_of(status: object) -> KubeError:
    """Return the error of an ERROR event."""
    try:
        return decode_response("Status", _decode_error, status)
    except MalformedResponse as error:
        return error


def _decode_error(status: Json) -> KubeError:
    return error_for_response(int(status["code"]), msgspec.json.encode(status))


def _next_backoff(backoff: timedelta, initial: timedelta, started: float) -> timedelta:
    """Double the backoff; start again if the attempt took longer than it, as the timeout of a stalled watch does."""
    took = timedelta(seconds=_now() - started)
    return min((initial if took > backoff else backoff) * 2, _MAX_BACKOFF)


def _delay(backoff: timedelta, retry_after: timedelta, freshness: Freshness) -> float:
    """Return the seconds until the next attempt, with jitter; at most until the collection must be listed again."""
    jittered = backoff.total_seconds() * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, not security
    delay = max(jittered, retry_after.total_seconds())
    return delay if freshness.must_list else min(delay, freshness.until_list + 1)


def _now() -> float:
    return asyncio.get_running_loop().time()

"""Lists and watches a collection for as long as the caller iterates, like client-go's reflector.

The consumer receives an `ObjectList`, which replaces everything known before, and then `WatchEvent`s for single
objects. Bookmarks, expired resourceVersions, closed streams and server restarts are handled here. `WatchDecoder`
decodes the lines of the stream; it has no socket, so it can be tested line by line.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import Expired, KubeError, TooManyRequests, Unavailable, error_for_response

log = logging.getLogger(__name__)

_PAGE_SIZE: Final = "500"
_INITIAL_BACKOFF: Final = timedelta(milliseconds=800)
_MAX_BACKOFF: Final = timedelta(seconds=30)
_MIN_WATCH_SECONDS: Final = 1.0
"""A watch that ends sooner is treated as a failure: restarting it without backoff would flood the server."""

_GRACE_PERIOD: Final = timedelta(seconds=30)
"""The server closes a watch after timeoutSeconds. If it has not done so after this time, the connection is dead."""


class WatchEventType(StrEnum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class ObjectList:
    """All objects of the collection; an object that is not in the list does not exist."""

    objects: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """A change of one object."""

    type: WatchEventType
    object: Json


WatchItem: TypeAlias = ObjectList | WatchEvent


@dataclass(frozen=True, slots=True)
class ListWatch:
    """The collection to list and watch: its path and selectors."""

    path: str
    field_selector: str = ""
    label_selector: str = ""

    def query(self) -> dict[str, str]:
        selectors = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector}
        return {name: value for name, value in selectors.items() if value}


@dataclass(slots=True)
class WatchDecoder:
    """Decodes the lines of a watch stream and tracks the resourceVersion from which to resume."""

    resource_version: str

    def decode(self, line: bytes) -> WatchEvent | None:
        """Decode one line; return None for a bookmark, raise a KubeError for an ERROR event."""
        try:
            event: Json = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            raise Unavailable("watch stream: line is not JSON") from error
        content: Json = event["object"]
        if event["type"] == "ERROR":
            raise error_for_response(int(content.get("code", 500)), json.dumps(content).encode())
        self.resource_version = content["metadata"]["resourceVersion"]
        return None if event["type"] == "BOOKMARK" else WatchEvent(WatchEventType(event["type"]), content)


async def list_and_watch(
    client: KubeClient,
    source: ListWatch,
    *,
    on_error: Callable[[KubeError], None] = lambda _: None,
    initial_backoff: timedelta = _INITIAL_BACKOFF,
) -> AsyncGenerator[WatchItem]:
    """Yield the list and then every change; retry failures without end, and report them only to ``on_error``.

    ``initial_backoff`` is the delay before the first retry; it doubles with each failure in a row.
    """
    decoder: WatchDecoder | None = None
    backoff = initial_backoff
    logged_error = ""
    while True:
        retry_after, started = timedelta(), _now()
        try:
            if decoder is None:
                objects, decoder = await _list(client, source)
                logged_error = ""
                yield objects
            async with aclosing(_watch(client, source, decoder)) as events:
                async for event in events:
                    backoff = initial_backoff
                    yield event
            if _now() - started > _MIN_WATCH_SECONDS:
                continue  # the server closed the watch after timeoutSeconds
        except Expired:
            decoder = None
        except KubeError as error:
            if logged_error != str(error):  # a persistent error, such as missing permissions, is logged once
                log.warning("watch failed", extra={"path": source.path, "error": str(error)})
            logged_error = str(error)
            on_error(error)
            backoff = min(backoff * 2, _MAX_BACKOFF)
            retry_after = error.retry_after or retry_after
            if not isinstance(error, Unavailable | TooManyRequests):
                decoder = None
        delay = backoff.total_seconds() * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, not security
        await asyncio.sleep(max(delay, retry_after.total_seconds()))


async def _list(client: KubeClient, source: ListWatch) -> tuple[ObjectList, WatchDecoder]:
    try:
        return await _list_pages(client, source, {"limit": _PAGE_SIZE})
    except Expired:
        # The continue token has expired while the pages were fetched; a list without pages cannot expire.
        return await _list_pages(client, source, {})


async def _list_pages(client: KubeClient, source: ListWatch, limit: dict[str, str]) -> tuple[ObjectList, WatchDecoder]:
    query = {**source.query(), **limit}
    objects: list[Json] = []
    while True:
        page = await client.get(source.path, query)
        objects.extend(map(_without_managed_fields, page.get("items") or ()))
        continue_token = page["metadata"].get("continue")
        if not continue_token:
            return ObjectList(tuple(objects)), WatchDecoder(page["metadata"]["resourceVersion"])
        query["continue"] = continue_token


async def _watch(client: KubeClient, source: ListWatch, decoder: WatchDecoder) -> AsyncGenerator[WatchEvent]:
    # A random duration, as in client-go, keeps many watches from restarting at the same time.
    duration = timedelta(seconds=random.randint(300, 600))  # noqa: S311 - spreads load, not security
    query = {
        **source.query(),
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": decoder.resource_version,
        "timeoutSeconds": str(duration.seconds),
    }
    async with aclosing(client.stream(source.path, query, duration + _GRACE_PERIOD)) as lines:
        async for line in lines:
            if line and (event := decoder.decode(line)) is not None:
                yield event


def _without_managed_fields(content: Json) -> Json:
    """Drop managedFields: half of the size of an object, unused, and a list holds thousands of objects."""
    content["metadata"].pop("managedFields", None)
    return content


def _now() -> float:
    return asyncio.get_running_loop().time()

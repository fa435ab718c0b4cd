"""List, then watch from there, for as long as the process lives.

What a consumer sees is simple: a `Listing` replaces everything known before, a `Change` alters one object. Everything
else (bookmarks, versions that expired, streams that end, servers that restart) is dealt with here. The stream's lines
are understood by `Progress`, which has no socket and can be tested line by line.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import Expired, KubeError, TooManyRequests, Unavailable, refusal

log = logging.getLogger(__name__)

_PAGE: Final = "500"
_FIRST_PAUSE: Final = timedelta(milliseconds=800)
_LONGEST_PAUSE: Final = timedelta(seconds=30)
_A_WHILE: Final = 1.0
"""A watch that ends sooner than this many seconds is no watch; going on at once would be a storm of requests."""

_GRACE: Final = timedelta(seconds=30)
"""The server ends a watch when its time is over; if it has not by then, it is not there."""


class Happened(StrEnum):
    """What became of an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects there are, at one moment; whatever is not in it is gone."""

    objects: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One object that was added, modified or deleted."""

    happened: Happened
    object: Json


@dataclass(frozen=True, slots=True)
class Trouble:
    """Nothing can be heard at the moment, and why; it is tried again by itself."""

    error: KubeError


News: TypeAlias = Listing | Change


@dataclass(frozen=True, slots=True)
class Watched:
    """Which objects: a collection's path, and a selection from it."""

    path: str
    field_selector: str = ""
    label_selector: str = ""

    def query(self) -> dict[str, str]:
        """Give the parameters that make the selection."""
        chosen = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector}
        return {name: value for name, value in chosen.items() if value}


@dataclass(slots=True)
class Progress:
    """How far a watch has come: the version to go on from."""

    version: str

    def feed(self, line: bytes) -> Change | None:
        """Understand one line of the stream; None for what only moves the version."""
        event: Any = _decode(line)
        thing: Json = event["object"]
        if event["type"] == "ERROR":
            raise refusal(int(thing.get("code", 500)), json.dumps(thing).encode())
        self.version = thing["metadata"]["resourceVersion"]
        return None if event["type"] == "BOOKMARK" else Change(Happened(event["type"]), thing)


async def follow(
    client: KubeClient, watched: Watched, *, first_pause: timedelta = _FIRST_PAUSE
) -> AsyncGenerator[News]:
    """Yield what is there and then everything that happens to it; never ends, never raises for the server's sake.

    `first_pause` comes before the first attempt to go on; each further one in vain doubles it.
    """
    async with aclosing(attend(client, watched, first_pause=first_pause)) as everything:
        async for one in everything:
            if not isinstance(one, Trouble):
                yield one


async def attend(
    client: KubeClient, watched: Watched, *, first_pause: timedelta = _FIRST_PAUSE
) -> AsyncGenerator[News | Trouble]:
    """Yield what `follow` yields, and in between the troubles that it keeps to itself."""
    progress: Progress | None = None
    pause = first_pause
    complaint = ""
    while True:
        least, began = timedelta(), _now()
        try:
            if progress is None:
                listing, progress = await _list(client, watched)
                complaint = ""
                yield listing
            async with aclosing(_watch(client, watched, progress)) as changes:
                async for change in changes:
                    pause = first_pause
                    yield change
            if _now() - began > _A_WHILE:
                continue  # its time was over, as agreed; nothing is wrong
        except Expired:
            progress = None
        except KubeError as error:
            if complaint != str(error):  # what stays forbidden is said once
                log.warning("watch interrupted", extra={"path": watched.path, "error": str(error)})
            complaint = str(error)
            yield Trouble(error)
            pause = min(pause * 2, _LONGEST_PAUSE)
            least = error.retry_after or least
            if not isinstance(error, Unavailable | TooManyRequests):
                progress = None
        await asyncio.sleep(max(_jittered(pause), least.total_seconds()))


async def _list(client: KubeClient, watched: Watched) -> tuple[Listing, Progress]:
    try:
        return await _pages(client, watched, {"limit": _PAGE})
    except Expired:
        # The pages of one list are all of one moment, and that has passed while they were turned.
        return await _pages(client, watched, {})


async def _pages(client: KubeClient, watched: Watched, limit: dict[str, str]) -> tuple[Listing, Progress]:
    query = {**watched.query(), **limit}
    objects: list[Json] = []
    while True:
        page = await client.get(watched.path, query)
        objects.extend(map(_trimmed, page.get("items") or ()))
        more = page["metadata"].get("continue")
        if not more:
            return Listing(tuple(objects)), Progress(page["metadata"]["resourceVersion"])
        query["continue"] = more


async def _watch(client: KubeClient, watched: Watched, progress: Progress) -> AsyncGenerator[Change]:
    # Not all of a fleet's watches should end, and begin again, in the same second.
    length = timedelta(seconds=random.randint(300, 600))  # noqa: S311 - spreads load, guards nothing
    query = {
        **watched.query(),
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": progress.version,
        "timeoutSeconds": str(length.seconds),
    }
    async with aclosing(client.stream(watched.path, query, length + _GRACE)) as lines:
        async for line in lines:
            if line and (change := progress.feed(line)) is not None:
                yield change


def _trimmed(thing: Json) -> Json:
    """Leave out who wrote which field: half of every object, of no use here, and a list holds thousands at once."""
    thing["metadata"].pop("managedFields", None)
    return thing


def _decode(line: bytes) -> Any:  # noqa: ANN401 - JSON of a shape that only the server promises
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise Unavailable("a watch's line is not JSON") from error


def _now() -> float:
    return asyncio.get_running_loop().time()


def _jittered(pause: timedelta) -> float:
    return pause.total_seconds() * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, guards nothing

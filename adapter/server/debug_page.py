"""GET /debug/page, /debug/picture and /debug/autoscalers/...: the debugging page, and what it shows as JSON.

Read only, behind the same door as everything else. The page asks for the picture again and again, each time with the
tag of the one it has, and is answered when there is another one or when its time is up.
"""

import asyncio
import hashlib
import mimetypes
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from importlib import resources
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from aiohttp import web

from adapter import errors
from adapter.debug.decision_log import Shelf
from adapter.debug.formatting import time
from adapter.debug.rule_views import rules
from adapter.debug.views import Wish, listed, portrait
from adapter.metrics.reader import RuleReader
from adapter.server import serialization
from adapter.server.content_negotiation import JSON, YAML
from adapter.server.request_context import RequestContext

Json: TypeAlias = dict[str, Any]

PAGE: Final = "/debug/page"
AUTOSCALERS: Final = "/debug/autoscalers/"

_GUARDED: Final = {
    # Nothing from elsewhere, nothing inline, nobody may frame it: a label that looks like a script stays a label.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_LOOK_AGAIN: Final = 1.0
"""Seconds after which rules are looked at again; they do not tell of themselves."""

_GATHER: Final = 0.2
"""Seconds in which more news is gathered before the picture is drawn again: a large fleet has some at every moment."""

_MOST_WAITING: Final = 32
"""Whoever comes beyond that is answered at once, as if he had not asked to wait."""

_NOT_HERE: Final = "nothing was decided in this process yet"


class Exhibits(NamedTuple):
    """What the page is about."""

    shelf: Shelf
    reader: RuleReader
    problems: Callable[[], Mapping[str, tuple[str, ...]]]
    clock: Callable[[], datetime]


class Page:
    """The page and its JSON."""

    def __init__(self, exhibits: Exhibits, patience: timedelta) -> None:
        self._exhibits = exhibits
        self._patience = patience.total_seconds()
        self._waiting = 0
        self._leaving = False

    def leave(self) -> None:
        """Let nobody wait any longer: the process is about to end."""
        self._leaving = True

    async def html(self, _: RequestContext) -> web.Response:
        """Answer ``/debug/page``."""
        return _FILES["index.html"].answer()

    async def file(self, exchange: RequestContext) -> web.Response:
        """Answer ``/debug/page/...``: the page's own files."""
        file = _FILES.get(exchange.path.removeprefix(f"{PAGE}/"))
        if file is None:
            raise errors.PathNotFound
        return file.answer()

    async def autoscaler(self, exchange: RequestContext) -> web.Response:
        """Answer ``/debug/autoscalers/NAMESPACE/NAME``: the working of its last decision."""
        key = exchange.path.removeprefix(AUTOSCALERS).rstrip("/")
        found = self._one(key)
        if found is None:
            raise errors.AutoscalerNotFound(_missing(key, self._exhibits))
        media = exchange.wants((JSON, YAML)).media
        body = serialization.to_bytes(found, media, pretty=exchange.pretty())
        return web.Response(body=body, content_type=media, headers=_GUARDED)

    async def picture(self, exchange: RequestContext) -> web.Response:
        """Answer ``/debug/picture``: at once, or with ``If-None-Match`` when there is something new."""
        known, loop = exchange.request.headers.get("If-None-Match"), asyncio.get_running_loop()
        until = loop.time() + self._patience
        while True:
            version = self._exhibits.shelf.version
            content, tag = self._drawn(exchange)
            left = until - loop.time()
            if tag != known or left <= 0 or self._leaving or self._waiting >= _MOST_WAITING:
                break
            self._waiting += 1
            try:
                await self._exhibits.shelf.news(version, min(left, _LOOK_AGAIN))
                await asyncio.sleep(min(left, _GATHER))
            finally:
                self._waiting -= 1
        now = {"ETag": tag, "X-Now": time(self._exhibits.clock()) or "", **_GUARDED}
        if tag == known:
            return web.Response(status=304, headers=now)
        return web.Response(body=content, content_type=JSON.media, headers=now)

    def _drawn(self, exchange: RequestContext) -> tuple[bytes, str]:
        """Draw the picture for one wish; its tag is of its content, so the same is never sent twice."""
        exhibits, query = self._exhibits, exchange.query
        whole = rules(exhibits.reader, dict(exhibits.problems()))
        picture: Json = {
            "leader": exhibits.shelf.leader().partition("_")[0],
            **listed(exhibits.shelf, Wish(query.get("text", ""), query.get("state", ""))),
            "rulesFailing": [rule["name"] for rule in whole["rules"] if rule["health"] == "failing"],
            "rulesTotal": len(whole["rules"]),
        }
        if "rules" in query:
            picture["rules"] = whole
            for rule in whole["rules"]:
                (rule["lastFetch"] or {}).pop("ageSeconds", None)  # it would make every picture a new one
        if selected := query.get("selected"):
            picture["selected"] = self._one(selected, with_timeline=True)
        body = msgspec.json.encode(picture)
        return body, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'

    def _one(self, key: str, *, with_timeline: bool = False) -> Json | None:
        kept = self._exhibits.shelf.get(key)
        if kept is None:
            return None
        timeline = {"timeline": kept.timeline.columns()} if with_timeline else {}
        return {**portrait(key, kept), **timeline}


class _File:
    """One of the page's files, as it is served."""

    def __init__(self, name: str, body: bytes) -> None:
        self._body = body
        self._type = mimetypes.guess_type(name)[0] or "application/octet-stream"

    def answer(self) -> web.Response:
        return web.Response(body=self._body, content_type=self._type, charset="utf-8", headers=_GUARDED)


def _static() -> dict[str, _File]:
    folder = resources.files("adapter.debug") / "static"
    return {file.name: _File(file.name, file.read_bytes()) for file in folder.iterdir() if file.is_file()}


_FILES: Final = _static()
"""Read when the process starts, before there is anyone to keep waiting."""


def _missing(key: str, exhibits: Exhibits) -> str:
    if not len(exhibits.shelf):
        leader = exhibits.shelf.leader().partition("_")[0]  # a pod's name is the first part of its identity
        whom = f"{leader} leads; ask that one" if leader else "perhaps another one leads; ask that one"
        return f"{key}: {_NOT_HERE}: {whom}"
    others = "is 1 other" if len(exhibits.shelf) == 1 else f"are {len(exhibits.shelf)} others"
    return f"no decision was made for an autoscaler {key!r}; there {others}"

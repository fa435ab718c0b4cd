"""A metric system for the demonstration: it answers Prometheus' query API, as far as the demonstration asks.

It scrapes when it is asked, keeps no past, and understands one kind of query: a metric's name. It can go down, and then
nobody listens at its port.
"""

import re
import time
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import aiohttp
from aiohttp import web

Series: TypeAlias = tuple[str, dict[str, str], str]
"""A name, labels, and the value as it is written."""

_LOOPBACK: Final = "127.0.0.1"
_LINE: Final = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL: Final = re.compile(r'(\w+)="([^"\\]*)"')


def parse(text: str) -> Iterator[Series]:
    """Read what an exporter shows, as far as ours goes: no escapes, no timestamps."""
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is not None and not line.startswith("#"):
            yield found["name"], dict(_LABEL.findall(found["labels"] or "")), found["value"]


def answer(query: str, found: Iterator[Series], now: float) -> tuple[int, dict[str, Any]]:
    """Answer an instant query as Prometheus does; the status of the answer, and its body."""
    name = query.strip()
    if not re.fullmatch(r"[a-zA-Z_:][\w:]*", name):
        why = "this is the demonstration's own backend, which knows metrics by name only; try --prometheus"
        return 400, {"status": "error", "errorType": "bad_data", "error": why}
    result: list[dict[str, Any]] = [
        {"metric": {"__name__": name, **labels}, "value": [now, value]} for each, labels, value in found if each == name
    ]
    return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}


class MetricsBackend:
    """The backend, on loopback."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Where it answers, when it does."""
        return f"http://{_LOOPBACK}:{self._port}"

    async def come_up(self) -> None:
        """Listen, where it listened before."""
        application = web.Application()
        application.router.add_get("/api/v1/query", self._query)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, _LOOPBACK, self._port, reuse_address=True).start()
        self._port = self._runner.addresses[0][1]

    async def go_down(self) -> None:
        """Stop listening and drop every connection."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _query(self, request: web.Request) -> web.Response:
        async with aiohttp.ClientSession() as session, session.get(self._target) as scraped:
            text = await scraped.text()
        status, body = answer(request.query.get("query", ""), parse(text), time.time())  # noqa: TID251 - its own clock, as any server has one
        return web.json_response(body, status=status)

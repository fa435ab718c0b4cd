"""A minimal Prometheus: serves instant queries that consist of a metric name, and scrapes when it is queried."""

import re
import time
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import aiohttp
from aiohttp import web

Series: TypeAlias = tuple[str, dict[str, str], str]
"""Name, labels, and the value as text."""

_LOOPBACK: Final = "127.0.0.1"
_LINE: Final = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL: Final = re.compile(r'(\w+)="([^"\\]*)"')


def parse_exposition(text: str) -> Iterator[Series]:
    """Parse Prometheus' text format, without escapes and timestamps."""
    for line in text.splitlines():
        parsed = _LINE.fullmatch(line)
        if parsed is not None and not line.startswith("#"):
            yield parsed["name"], dict(_LABEL.findall(parsed["labels"] or "")), parsed["value"]


def query_response(query: str, series: Iterator[Series], now: float) -> tuple[int, dict[str, Any]]:
    """Return status and body of the response to an instant query."""
    name = query.strip()
    if not re.fullmatch(r"[a-zA-Z_:][\w:]*", name):
        error = "the demo's simulated Prometheus supports only queries by metric name; use --prometheus for PromQL"
        return 400, {"status": "error", "errorType": "bad_data", "error": error}
    result: list[dict[str, Any]] = [
        {"metric": {"__name__": name, **labels}, "value": [now, value]}
        for series_name, labels, value in series
        if series_name == name
    ]
    return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}


class FakePrometheus:
    """The server, on loopback."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://{_LOOPBACK}:{self._port}"

    async def start(self) -> None:
        application = web.Application()
        application.router.add_get("/api/v1/query", self._query)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, _LOOPBACK, self._port, reuse_address=True).start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _query(self, request: web.Request) -> web.Response:
        async with aiohttp.ClientSession() as session, session.get(self._target) as scrape:
            text = await scrape.text()
        status, body = query_response(request.query.get("query", ""), parse_exposition(text), time.time())  # noqa: TID251 - a server's own clock
        return web.json_response(body, status=status)

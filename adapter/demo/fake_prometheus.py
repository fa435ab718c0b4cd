"""A minimal Prometheus: serves the metrics of the order queue to instant queries that consist of a metric name."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from aiohttp import web

from adapter import process
from adapter.demo.environment import LOOPBACK
from adapter.demo.order_queue import LABELS

_METRIC_NAME: Final = re.compile(r"\s*([a-zA-Z_:][\w:]*)\s*")


def query_response(query: str, values: Mapping[str, int], now: float) -> tuple[int, dict[str, Any]]:
    """Return status and body of the response to an instant query; ``values`` are those of all metrics, by name."""
    name = _METRIC_NAME.fullmatch(query)
    if name is None:
        error = "the demo's simulated Prometheus supports only queries by metric name; use --prometheus for PromQL"
        return 400, {"status": "error", "errorType": "bad_data", "error": error}
    series = {"__name__": name[1], **LABELS}
    result = [{"metric": series, "value": [now, str(values[name[1]])]}] if name[1] in values else []
    return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}


class FakePrometheus:
    """The server, on loopback."""

    def __init__(self, values: Callable[[], Mapping[str, int]]) -> None:
        self._values = values
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._port}"

    async def start(self) -> None:
        application = web.Application()
        application.router.add_get("/api/v1/query", self._query)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, LOOPBACK, self._port, reuse_address=True).start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _query(self, request: web.Request) -> web.Response:
        status, body = query_response(request.query.get("query", ""), self._values(), process.clock().timestamp())
        return web.json_response(body, status=status)

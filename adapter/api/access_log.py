"""One line for each request: who asked for what, how it ended, how long it took. Never a header, never a token."""

from collections.abc import Callable
from datetime import datetime

from aiohttp import web

from adapter.api.exchange import Exchange
from adapter.auth.attributes import ResourceAttributes
from adapter.log import Write

_LONGEST = 256


class AccessLog:
    """Writes the line, for every request that is not only a sign of life or a look at what there is."""

    def __init__(self, write: Write, clock: Callable[[], datetime]) -> None:
        self._write = write
        self._clock = clock

    def add(self, exchange: Exchange, response: web.Response, seconds: float, error: Exception | None) -> None:
        """Write about one request."""
        if exchange.endpoint != "metric" and response.status < 400:
            return
        facts: dict[str, object] = {
            "method": exchange.request.method,
            "endpoint": exchange.endpoint,
            "status": response.status,
            "ms": int(seconds * 1e6) / 1000,
            "caller": exchange.caller.name if exchange.caller else "",
            "audit": exchange.audit_id,
        }
        asked = exchange.attributes
        if isinstance(asked, ResourceAttributes):
            facts["namespace"] = asked.namespace
            facts["metric"] = asked.resource[:_LONGEST]
        else:
            facts["path"] = exchange.path[:_LONGEST]
        if error is not None:
            facts["error"] = f"{type(error).__name__}: {getattr(error, 'why', error)}"[:_LONGEST]
        self._write(self._clock(), "request", facts)

"""One line for each request: who asked for what, how it ended, how long it took. Never a header, never a token."""

import logging

from aiohttp import web

from adapter.api.exchange import Exchange
from adapter.auth.attributes import ResourceAttributes

_log = logging.getLogger("adapter.access")
_LONGEST_PATH = 256


def write(exchange: Exchange, response: web.Response, seconds: float, error: Exception | None) -> None:
    """Write the line. What only says that all is well (health, discovery) is for who debugs."""
    level = logging.INFO if exchange.endpoint == "metric" or response.status >= 400 else logging.DEBUG
    if not _log.isEnabledFor(level):
        return
    asked = exchange.attributes
    facts: dict[str, object] = {
        "method": exchange.request.method,
        "endpoint": exchange.endpoint,
        "status": response.status,
        "ms": round(seconds * 1000, 3),
        "caller": exchange.caller.name if exchange.caller else "",
        "audit": exchange.audit_id,
    }
    if isinstance(asked, ResourceAttributes):
        facts |= {"namespace": asked.namespace, "metric": asked.resource}
    else:
        facts["path"] = exchange.path[:_LONGEST_PATH]
    if error is not None:
        facts["error"] = f"{type(error).__name__}: {getattr(error, 'why', error)}"[:_LONGEST_PATH]
    _log.log(level, "request", extra=facts)

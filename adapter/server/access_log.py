"""One line for each request: who asked for what, how it ended, how long it took. Never a header, never a token."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from adapter.auth.attributes import ResourceAttributes
from adapter.log import Write
from adapter.server.request_context import RequestContext

_LONGEST = 256


class Answered(NamedTuple):
    """A request that has its answer."""

    exchange: RequestContext
    status: int
    seconds: float
    error: Exception | None


class AccessLog:
    """Writes the lines, for every request that is not only a sign of life or a look at what there is."""

    def __init__(self, write: Write, clock: Callable[[], datetime]) -> None:
        self._write = write
        self._clock = clock

    def add(self, answered: Iterable[Answered]) -> None:
        """Write about requests that were answered just now."""
        told = [_facts(each) for each in answered if each.exchange.endpoint == "metric" or each.status >= 400]
        if told:
            self._write(self._clock(), "request", told)


def _facts(answered: Answered) -> dict[str, object]:
    exchange, status, seconds, error = answered
    facts: dict[str, object] = {
        "method": exchange.request.method,
        "endpoint": exchange.endpoint,
        "status": status,
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
    return facts

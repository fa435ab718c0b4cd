"""Metrics and access log of responses. The access log never contains request headers or tokens."""

import time
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Final

from adapter import errors
from adapter.auth.attributes import ResourceAttributes
from adapter.auth.authentication import ANONYMOUS
from adapter.log import WriteLine
from adapter.server.request_context import RequestContext
from adapter.telemetry import Telemetry

_MAX_FIELD_LENGTH: Final = 256
_BURST: Final = 200
_LINES_PER_SECOND: Final = 20.0
_AUTHORIZATION_RESULTS: Final[dict[type[object], str]] = {
    errors.AccessDenied: "denied",
    errors.ReviewUnavailable: "error",
}


class LineBudget:
    """Limits the log lines that clients without credentials cause, so that they cannot fill the log."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._left, self._counted = float(_BURST), timer()
        self.omitted = 0
        """Lines that were not written since the last one."""

    def take(self) -> bool:
        """Return whether a line may be written."""
        now = self._timer()
        self._left = min(_BURST, self._left + (now - self._counted) * _LINES_PER_SECOND)
        self._counted = now
        if self._left < 1:
            self.omitted += 1
            return False
        self._left -= 1
        return True


class RequestAccounting:
    """Counts responses and writes the access log."""

    def __init__(self, telemetry: Telemetry, write_line: WriteLine, clock: Callable[[], datetime]) -> None:
        self.telemetry = telemetry
        self._write_line = write_line
        self._clock = clock
        self.unauthenticated_lines = LineBudget()
        # labels() locks and converts its arguments on each call; the number of label values is small.
        self._requests = cache(telemetry.requests.labels)
        self._duration = cache(telemetry.request_duration.labels)
        self._authentications = cache(telemetry.authentications.labels)
        self._authorizations = cache(telemetry.authorizations.labels)

    def record(self, context: RequestContext, status: int, seconds: float, error: Exception | None) -> None:
        """Record one response; discovery and health are logged only if they fail."""
        self._requests(context.endpoint, status).inc()
        self._duration(context.endpoint).observe(seconds)
        if context.caller is not None:
            self._authentications("anonymous" if context.caller is ANONYMOUS else "success").inc()
            self._authorizations(_AUTHORIZATION_RESULTS.get(type(error), "allowed")).inc()
        elif isinstance(error, errors.Unauthenticated):
            self._authentications("failure").inc()
        if isinstance(error, errors.AdapterError) and error.failure is not None:
            self.telemetry.metric_failures.labels(error.failure.value).inc()
        if context.endpoint == "metric" or status >= 400:
            self._log(context, status, seconds, error)

    def _log(self, context: RequestContext, status: int, seconds: float, error: Exception | None) -> None:
        fields = _log_fields(context, status, seconds, error)
        if context.caller is None or context.caller is ANONYMOUS:
            budget = self.unauthenticated_lines
            if not budget.take():
                return
            if budget.omitted:
                fields["omitted"], budget.omitted = budget.omitted, 0
        self._write_line(self._clock(), "request", fields)

    def record_unparsed(self, endpoint: str, status: int) -> None:
        """Record a response to a request that could not be parsed, or whose handler failed unexpectedly."""
        self._requests(endpoint, status).inc()


def _log_fields(context: RequestContext, status: int, seconds: float, error: Exception | None) -> dict[str, object]:
    fields: dict[str, object] = {
        "method": context.request.method,
        "endpoint": context.endpoint,
        "status": status,
        "ms": int(seconds * 1e6) / 1000,
        "caller": context.caller.name if context.caller else "",
        "audit": context.audit_id,
    }
    attributes = context.attributes
    if isinstance(attributes, ResourceAttributes):
        fields["namespace"] = attributes.namespace
        fields["metric"] = attributes.resource[:_MAX_FIELD_LENGTH]
    else:
        fields["path"] = context.path[:_MAX_FIELD_LENGTH]
    if error is not None:
        message = error.cause if isinstance(error, errors.Unauthenticated) else error
        fields["error"] = f"{type(error).__name__}: {message}"[:_MAX_FIELD_LENGTH]
    return fields

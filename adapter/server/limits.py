"""Limits on concurrent requests and on the duration of a request."""

from datetime import timedelta

from prometheus_client import Gauge

from adapter.decoding.duration import parse_duration
from adapter.errors import InvalidRequest, TooManyConcurrentRequests
from adapter.server.request_context import RequestContext


class ConcurrencyLimit:
    """Rejects requests above a maximum number in flight; queueing them would delay all requests."""

    def __init__(self, max_in_flight: int, gauge: Gauge) -> None:
        self._max_in_flight = max_in_flight
        self._in_flight = 0
        gauge.set_function(lambda: self._in_flight)

    def __enter__(self) -> None:
        if self._in_flight >= self._max_in_flight:
            raise TooManyConcurrentRequests
        self._in_flight += 1

    def __exit__(self, *_: object) -> None:
        self._in_flight -= 1


def request_timeout(context: RequestContext, max_timeout: timedelta) -> float:
    """Return the timeout of a request in seconds: ``?timeout=``, at most ``max_timeout``."""
    text = context.query.get("timeout")
    if not text:
        return max_timeout.total_seconds()
    try:
        timeout = parse_duration(text)
    except ValueError as error:
        raise InvalidRequest(f"timeout: {error}") from None
    return min(timeout or max_timeout, max_timeout).total_seconds()

"""How much at once, and for how long."""

from datetime import timedelta

from prometheus_client import Gauge

from adapter.api.exchange import Exchange
from adapter.duration import parse_duration
from adapter.errors import BadRequest, TooManyRequests


class Turnstile:
    """Lets so many requests be answered at once, and refuses the next: waiting in a queue would only make all late."""

    def __init__(self, most: int, gauge: Gauge) -> None:
        self._most = most
        self._inside = 0
        gauge.set_function(lambda: self._inside)

    def __enter__(self) -> None:
        if self._inside >= self._most:
            raise TooManyRequests
        self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1


def time_for(exchange: Exchange, most: timedelta) -> timedelta:
    """Say how long an answer may take: our own limit, or less if the caller says ``timeout=``."""
    asked = exchange.query.get("timeout")
    if not asked:
        return most
    try:
        wanted = parse_duration(asked)
    except ValueError as error:
        raise BadRequest(f"timeout: {error}") from None
    return min(wanted, most) if wanted else most

"""Rate limit of Datadog, as its response headers report it. Time is an argument; no I/O."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

_MAX_SECONDS: Final = 3600.0
"""Datadog's rate limits reset within an hour; a longer time in a header is an error."""


class RateLimitStatus:
    """Until when the rate limit is exhausted, in seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._exhausted_until = 0.0
        self._name = ""

    def exhausted(self, now: float) -> str:
        """Return which rate limit is exhausted; empty if none is."""
        return f"rate limit {self._name} exhausted" if now < self._exhausted_until else ""

    def update(self, status: int, headers: Mapping[str, str], now: float) -> None:
        """Update from the headers of a response."""
        remaining, reset = _number(headers, "X-RateLimit-Remaining"), _number(headers, "X-RateLimit-Reset")
        if status == HTTPStatus.TOO_MANY_REQUESTS and reset is None:
            reset = _number(headers, "X-RateLimit-Period")
        is_exhausted = status == HTTPStatus.TOO_MANY_REQUESTS or (remaining is not None and remaining < 1)
        if is_exhausted and reset is not None:
            self._exhausted_until = now + min(max(reset, 0.0), _MAX_SECONDS)
            self._name = headers.get("X-RateLimit-Name", "")[:60]


def _number(headers: Mapping[str, str], name: str) -> float | None:
    try:
        return float(headers[name])
    except (KeyError, ValueError):
        return None

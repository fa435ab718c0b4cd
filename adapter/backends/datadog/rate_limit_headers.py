"""How often Datadog lets itself be asked, as its headers say. Time is an argument."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

_LONGEST: Final = 3600.0
"""Seconds: no limit of Datadog's is over more than an hour, so whatever says more is wrong."""


class Limits:
    """Until when there is no use in calling, in seconds of some clock."""

    def __init__(self) -> None:
        self._spent_until = 0.0
        self._name = ""

    def spent(self, now: float) -> str:
        """Say which limit is spent, if one is; asking would be of no use."""
        return f"the limit {self._name} is spent" if now < self._spent_until else ""

    def note(self, status: int, headers: Mapping[str, str], now: float) -> None:
        """Learn from an answer."""
        remaining, reset = _number(headers, "X-RateLimit-Remaining"), _number(headers, "X-RateLimit-Reset")
        if status == HTTPStatus.TOO_MANY_REQUESTS and reset is None:
            reset = _number(headers, "X-RateLimit-Period")
        is_spent = status == HTTPStatus.TOO_MANY_REQUESTS or (remaining is not None and remaining < 1)
        if is_spent and reset is not None:
            self._spent_until = now + min(max(reset, 0.0), _LONGEST)
            self._name = headers.get("X-RateLimit-Name", "")[:60]


def _number(headers: Mapping[str, str], name: str) -> float | None:
    try:
        return float(headers[name])
    except (KeyError, ValueError):
        return None

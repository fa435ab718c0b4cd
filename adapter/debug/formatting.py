"""Formatting of times and quantities in the debugging endpoints."""

from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from autoscaler.values.timestamps import format_rfc3339

Json: TypeAlias = dict[str, Any]

_UNITS: Final = {"d": 86400, "h": 3600, "min": 60, "s": 1}


def format_time(time: datetime | None) -> str | None:
    """Return a time in UTC with milliseconds, as RFC 3339."""
    return None if time is None else format_rfc3339(time, "milliseconds")


def format_quantity(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def format_duration(duration: timedelta) -> str:
    """Format a duration with its two largest units: ``45 s``, ``5 min``, ``1 h 30 min``, ``2 d``."""
    rest, parts = max(duration.total_seconds(), 0), list[str]()
    if rest < _UNITS["min"]:
        return f"{rest:g} s"
    for unit, seconds in _UNITS.items():
        number, rest = divmod(rest, seconds)
        if number or parts:
            parts.append(f"{number:g} {unit}" if number else "")
    return " ".join(filter(None, parts[:2]))

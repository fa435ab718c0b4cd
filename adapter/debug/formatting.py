"""Formatting of times and quantities in the debugging endpoints."""

from datetime import datetime
from typing import Any, TypeAlias

from autoscaler.values.timestamps import format_rfc3339

Json: TypeAlias = dict[str, Any]


def format_time(time: datetime | None) -> str | None:
    """Return a time in UTC with milliseconds, as RFC 3339."""
    return None if time is None else format_rfc3339(time, "milliseconds")


def format_quantity(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else str(milli // 1000)

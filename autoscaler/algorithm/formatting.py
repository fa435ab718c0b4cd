"""Formatting of times, durations, numbers and counts in messages."""

from datetime import datetime, timedelta
from typing import Final

from autoscaler.values.timestamps import to_utc

_EXTERNAL_METRICS_API: Final = "unable to fetch metrics from external metrics API: "


def time_of_day(moment: datetime) -> str:
    """Format a time in UTC as ``14:03:20``."""
    return to_utc(moment).strftime("%H:%M:%S")


def time_near(moment: datetime, other: datetime | None) -> str:
    """Format a time in UTC as ``14:03:20``, with its date if that is not the date of the other time."""
    moment = to_utc(moment)
    is_same_day = other is None or moment.date() == to_utc(other).date()
    return time_of_day(moment) if is_same_day else moment.strftime("%Y-%m-%d %H:%M:%S")


def seconds(duration: timedelta) -> str:
    """Format a duration as ``300 s``."""
    return f"{duration.total_seconds():g} s"


def go_duration(duration: timedelta) -> str:
    """Format a duration as Go does: 45s, 3m0s, 1h0m5s."""
    minutes, rest = divmod(max(int(duration.total_seconds()), 0), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def decimal(milli: int) -> str:
    """Format thousandths as a decimal number with all its digits."""
    whole, rest = divmod(abs(milli), 1000)
    fraction = f".{rest:03}".rstrip("0") if rest else ""
    return f"{'-' if milli < 0 else ''}{whole}{fraction}"


def count(number: int, noun: str) -> str:
    """Format a number with its noun in singular or plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def failure_cause(message: str) -> str:
    """Return the message of a failed read without upstream's introduction.

    It has the name of the metric, which explanations show themselves, and its selector in Go syntax. The conditions and
    events keep it, as in an HPA.
    """
    return message.partition(_EXTERNAL_METRICS_API)[2] or message

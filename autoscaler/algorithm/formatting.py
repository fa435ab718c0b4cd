"""Formatting of times, durations, numbers and counts in messages."""

from datetime import datetime, timedelta

from autoscaler.values.timestamps import to_utc


def time_of_day(moment: datetime) -> str:
    """Format a time in UTC as ``14:03:20``."""
    return to_utc(moment).strftime("%H:%M:%S")


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
    """Format thousandths as a decimal number with six significant digits."""
    return f"{milli / 1000:.6g}"


def count(number: int, noun: str) -> str:
    """Format a number with its noun in singular or plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

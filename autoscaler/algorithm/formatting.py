"""How times, numbers and counts are written for people."""

from datetime import datetime, timedelta


def clock(moment: datetime) -> str:
    """Write the time of day."""
    return moment.strftime("%H:%M:%S")


def seconds(duration: timedelta) -> str:
    """Write a duration as specs do."""
    return f"{duration.total_seconds():g} s"


def number(milli: int) -> str:
    """Write thousandths as people do."""
    return f"{milli / 1000:.6g}"


def count(how_many: int, noun: str) -> str:
    """Write a number of things."""
    return f"{how_many} {noun}" if how_many == 1 else f"{how_many} {noun}s"

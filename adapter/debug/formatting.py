"""Times, numbers and labels as the debugging endpoints write them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta


def time(at: datetime | None) -> str | None:
    """Write a time in UTC, to the millisecond."""
    return None if at is None else at.astimezone(UTC).isoformat(timespec="milliseconds")[:23] + "Z"


def seconds(length: timedelta) -> float:
    """Write a length of time."""
    return round(length.total_seconds(), 3)


def number(milli: int) -> str:
    """Write thousandths as a Kubernetes quantity."""
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def labels_of(labels: Mapping[str, str]) -> dict[str, str]:
    """Write labels in order."""
    return dict(sorted(labels.items()))

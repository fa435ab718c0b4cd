"""RFC 3339 timestamps in UTC, as Kubernetes writes them, and arithmetic that does not overflow.

Times and durations of stored objects are limited only by their format, so a sum can lie outside of the years 1 to 9999.
It is then replaced by the nearest time in that range.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
_LATEST: Final = datetime.max.replace(tzinfo=UTC)


def format_rfc3339(moment: datetime, timespec: str = "seconds") -> str:
    """Format a timestamp in UTC; ``timespec`` is that of ``isoformat``, and smaller units are cut off."""
    return to_utc(moment).replace(tzinfo=None).isoformat(timespec=timespec) + "Z"


def parse_rfc3339(text: str | None) -> datetime | None:
    """Parse a timestamp; None if it is absent."""
    return datetime.fromisoformat(text) if text else None


def to_utc(moment: datetime) -> datetime:
    """Convert a timestamp to UTC."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return _EARLIEST if moment.year == _EARLIEST.year else _LATEST


def add_seconds(moment: datetime, seconds: int) -> datetime:
    """Return the time some seconds after ``moment``."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return _LATEST

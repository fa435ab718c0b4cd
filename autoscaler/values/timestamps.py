"""RFC 3339 timestamps in UTC, as Kubernetes writes them."""

from datetime import UTC, datetime


def format_rfc3339(moment: datetime, timespec: str = "seconds") -> str:
    """Format a timestamp in UTC; ``timespec`` is that of ``isoformat``, and smaller units are cut off."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=timespec) + "Z"


def parse_rfc3339(text: str | None) -> datetime | None:
    """Parse a timestamp; None if it is absent."""
    return datetime.fromisoformat(text) if text else None

"""Parsing of moments in the past: ``03:12``, ``2026-11-17T03:12:00Z``, ``24h``, ``2h ago``. Pure."""

from datetime import UTC, datetime, time, timedelta
from typing import Final

from adapter.decoding.duration import parse_duration

FORMATS: Final = (
    "a time of day such as 03:12 (UTC), a time such as 2026-11-17T03:12:00Z, or a duration such as 2h or 7d"
)
_MAX_LENGTH: Final = 64


def parse_moment(text: str, now: datetime) -> datetime:
    """Return the moment; a time of day is the last one before ``now``. Raise ValueError for any other text."""
    trimmed = text.strip().removesuffix("ago").strip()
    if len(trimmed) > _MAX_LENGTH:
        raise ValueError(f"must be {FORMATS}")
    for parse in (_before_now, _time_of_day, _full_time):
        try:
            return parse(trimmed, now)
        except (ValueError, OverflowError):
            continue
    raise ValueError(f"{text!r} is not {FORMATS}")


def _before_now(text: str, now: datetime) -> datetime:
    if text == "now":
        return now
    if text.endswith("d") and text[:-1].isascii() and text[:-1].isdigit():
        return now - timedelta(days=int(text[:-1]))
    return now - parse_duration(text)


def _time_of_day(text: str, now: datetime) -> datetime:
    if ":" not in text:
        raise ValueError(text)
    parsed = time.fromisoformat(text)
    zone = parsed.tzinfo or UTC
    found = datetime.combine(now.astimezone(zone).date(), parsed.replace(tzinfo=zone))
    return (found if found <= now else found - timedelta(days=1)).astimezone(UTC)


def _full_time(text: str, _now: datetime) -> datetime:
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)

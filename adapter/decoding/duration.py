"""Durations as Kubernetes writes them: ``10s``, ``1m30s``, ``250ms``."""

import re
from datetime import timedelta
from typing import Final

_MICROSECONDS: Final = {"h": 3600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1, "µs": 1, "ns": 0.001}
_MAX_LENGTH: Final = 64
_PART: Final = re.compile(r"(\d{1,12}(?:\.\d{0,9})?|\.\d{1,9})(h|ms|m|s|us|µs|ns)", re.ASCII)
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)


def parse_duration(text: str) -> timedelta:
    """Parse a duration that is not negative; ``0`` needs no unit. Raise ValueError for any other text."""
    if text == "0":
        return timedelta()
    if len(text) > _MAX_LENGTH or not _WHOLE.fullmatch(text):
        raise ValueError(f"{text[:_MAX_LENGTH]!r} is not a duration such as 10s or 1m30s")
    try:
        return timedelta(microseconds=sum(float(number) * _MICROSECONDS[unit] for number, unit in _PART.findall(text)))
    except OverflowError:
        raise ValueError(f"{text!r} is too long") from None


def format_duration(duration: timedelta) -> str:
    """Return the text that ``parse_duration`` parses to this duration."""
    rest, parts = duration // timedelta(microseconds=1), ""
    for unit in ("h", "m", "s", "ms", "us"):
        count, rest = divmod(rest, int(_MICROSECONDS[unit]))
        parts += f"{count}{unit}" if count else ""
    return parts or "0s"

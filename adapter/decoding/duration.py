"""Lengths of time as Kubernetes writes them: ``10s``, ``1m30s``, ``250ms``."""

import re
from datetime import timedelta

_UNITS = {"h": 3600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1, "µs": 1, "ns": 0.001}
_PART = re.compile(r"(\d{1,12}(?:\.\d{0,9})?|\.\d{1,9})(h|ms|m|s|us|µs|ns)", re.ASCII)
_WHOLE = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)


def parse_duration(text: str) -> timedelta:
    """Read a duration that is not negative; ``0`` needs no unit. Raise ValueError if it is none."""
    if text == "0":
        return timedelta()
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration such as 10s or 1m30s")
    try:
        return timedelta(microseconds=sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))
    except OverflowError:
        raise ValueError(f"{text!r} is too long") from None

"""One number, its time and its labels. What cannot be sent safely cannot be a sample, only a raw one.

An HPA reads a negative number as an overflow and goes to its maximum, reads ``1e30`` as nothing and goes to its
minimum, and cannot decode NaN at all. So a sample is a count of thousandths from zero to what an int64 of them holds.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from functools import lru_cache

from autoscaler.types.record import Record

_LARGEST = Decimal(9_200_000_000_000_000)
_THOUSANDTH = Decimal("0.001")
_EXACT = Context(prec=60)


class Sample(Record, frozen=True):
    """A number as it was at one time."""

    milli: int
    """In thousandths, rounded up as Kubernetes rounds; never negative."""

    at: datetime
    labels: Mapping[str, str] = {}
    window: timedelta | None = None
    """What the number is an average over; None if it is of one moment."""


class RawSample(Record, frozen=True):
    """A number as a metric system gave it. Anything may be wrong with it, and only whoever reads it need care."""

    value: float
    at: datetime
    labels: Mapping[str, str] = {}
    window: timedelta | None = None


class NotFiniteError(ValueError):
    """NaN, an infinity, or no number at all."""


class RangeError(ValueError):
    """Negative, or beyond what an HPA can multiply by a thousand."""


@lru_cache(maxsize=65536)  # a snapshot is read many times before it changes
def milli_of(value: float | str | Decimal) -> int:
    """Say a number in thousandths, exactly, rounded up; raise if an HPA would misread it."""
    try:
        exact = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise NotFiniteError from None
    if not exact.is_finite():
        raise NotFiniteError
    if exact < 0 or exact > _LARGEST:
        raise RangeError("negative" if exact < 0 else f"above {_LARGEST:.1e}")
    if exact and exact.adjusted() < -3:
        return 1  # anything at all is at least one thousandth
    return int(exact.quantize(_THOUSANDTH, ROUND_CEILING, _EXACT).scaleb(3, _EXACT))

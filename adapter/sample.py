"""Samples: one value with its timestamp and labels.

An HPA takes a negative value for an overflow and scales to its maximum, takes ``1e30`` for zero and scales to its
minimum, and cannot decode NaN. So a ``Sample`` is an integer of thousandths within the range that an HPA handles; a
``RawSample`` is any value that a backend returned.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from functools import lru_cache

from autoscaler.types.record import Record

_MAX_VALUE = Decimal(9_200_000_000_000_000)
_THOUSANDTH = Decimal("0.001")
_EXACT = Context(prec=60)


class Sample(Record, frozen=True):
    """A value that can be served."""

    milli: int
    """In thousandths, rounded up as Kubernetes rounds; never negative."""

    at: datetime
    labels: Mapping[str, str] = {}
    window: timedelta | None = None
    """The period that the value is an average of; None for an instantaneous value."""


class RawSample(Record, frozen=True):
    """A value as a backend returned it, not validated."""

    value: float
    at: datetime
    labels: Mapping[str, str] = {}
    window: timedelta | None = None


class NotFiniteError(ValueError):
    """The value is NaN, infinite or not a number."""


class RangeError(ValueError):
    """The value is negative or exceeds the range of an HPA."""


@lru_cache(maxsize=65536)  # a snapshot is read many times before it changes
def milli_of(value: float | str | Decimal) -> int:
    """Return a value in thousandths, exact and rounded up; raise if an HPA would misinterpret it."""
    try:
        exact = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise NotFiniteError from None
    if not exact.is_finite():
        raise NotFiniteError
    if exact < 0 or exact > _MAX_VALUE:
        raise RangeError("negative" if exact < 0 else f"above {_MAX_VALUE:.1e}")
    if exact and exact.adjusted() < -3:
        return 1  # the smallest positive result
    return int(exact.quantize(_THOUSANDTH, ROUND_CEILING, _EXACT).scaleb(3, _EXACT))

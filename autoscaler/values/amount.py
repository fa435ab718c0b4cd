"""The number of a quantity: an integer mantissa times a power of ten, in one of two widths.

Like Kubernetes' int64Amount and infDecAmount, a *narrow* amount is a 64-bit integer and a *wide* amount has arbitrary
precision. Their rounding and overflow differ visibly, so both are implemented. All functions take and return integers.
"""

import math
import re
from typing import Final

from autoscaler.values.arithmetic import MAX_INT64, MIN_INT64, quotient, wrap32, wrap64

NANO: Final = -9
"""The smallest exponent of a parsed amount; finer amounts are rounded."""
MAX_DIGITS: Final = 4000
"""Limits the digits of an amount: `1e2000000000` would expand to a gigabyte."""

_POWERS: Final[tuple[int, ...]] = tuple(10**places for places in range(19))
_WRAPPING_SHIFTS: Final = frozenset({1, 2, 3, 6, 9})
_INTEGER: Final = re.compile(r"([+-]?+)0*+([0-9]*+)")


class AmountTooLongError(ValueError):
    """The amount has more than MAX_DIGITS digits."""


def parse_int64(text: str) -> int | None:
    """Parse a decimal int64 with optional sign and leading zeros; None if it is invalid or out of range."""
    match = _INTEGER.fullmatch(text)
    if match is None or not text[-1:].isdigit():
        return None
    sign, digits = match.groups()
    if len(digits) > 19:
        return None
    number = int(f"{sign}{digits or 0}")
    return number if MIN_INT64 <= number <= MAX_INT64 else None


def compare(mantissa: int, exponent: int, other: int, other_exponent: int) -> int:
    """Return -1, 0 or 1 if the first amount is less than, equal to or greater than the second."""
    shift = exponent - other_exponent
    if shift < 0:
        return -compare(other, other_exponent, mantissa, exponent)
    if shift > MAX_DIGITS and mantissa != 0:
        # A non-zero mantissa with this exponent exceeds every amount of at most MAX_DIGITS digits.
        return 1 if mantissa > 0 else -1
    if mantissa != 0:
        mantissa *= 10**shift
    return (mantissa > other) - (mantissa < other)


def rescale(mantissa: int, exponent: int, to: int) -> int:
    """Return the mantissa of the amount at the lower exponent ``to``, exactly."""
    shift = exponent - to
    if mantissa == 0 or shift == 0:
        return mantissa
    if shift + len(str(mantissa)) > MAX_DIGITS:
        raise AmountTooLongError(f"amount has more than {MAX_DIGITS} digits")
    power: int = 10**shift
    return mantissa * power


def divide_away(mantissa: int, places: int) -> int:
    """Divide by a power of ten and round away from zero."""
    if places > MAX_DIGITS:
        return (mantissa > 0) - (mantissa < 0)
    divisor: int = 10**places
    magnitude = -(-abs(mantissa) // divisor)
    return magnitude if mantissa >= 0 else -magnitude


def shift_narrow(mantissa: int, places: int) -> tuple[int, bool]:
    """Multiply an int64 by a power of ten; return the product and whether it fits.

    The value of a product that does not fit follows upstream: shifts by 1, 2, 3, 6 and 9 places are one
    multiplication that wraps around; other shifts multiply digit by digit and return zero.
    """
    if places <= 0 or mantissa == 0:
        return mantissa, True
    if places > 18:
        return 0, False
    product = mantissa * _POWERS[places]
    if MIN_INT64 <= product <= MAX_INT64:
        return product, True
    if mantissa == MIN_INT64 or places not in _WRAPPING_SHIFTS:
        return 0, False
    return wrap64(product), False


def narrow_at(mantissa: int, exponent: int, scale: int) -> int:
    """Return a narrow amount in units of 10**scale, rounded away from zero, with upstream's overflow."""
    if exponent < scale:
        return divide_away(mantissa, scale - exponent)
    return shift_narrow(mantissa, wrap32(exponent - scale))[0]


def wide_at(mantissa: int, exponent: int, scale: int) -> int:
    """Return a wide amount in units of 10**scale, rounded up; negative fractions round wrongly, as upstream."""
    places = scale - exponent
    if mantissa == 0:
        return 0
    if places <= 0:
        # Upstream computes the power of ten as a float; on amd64, a value beyond int64 converts to the minimum.
        power = _POWERS[-places] if -places < len(_POWERS) else MIN_INT64
        return wrap64(wrap64(mantissa) * power)
    if mantissa < MAX_INT64 and places < 19:
        low, divisor = wrap64(mantissa), _POWERS[places]
        return quotient(low, divisor) + (low % divisor != 0)
    divisor = int(10**places)
    return wrap64(-(-mantissa // divisor))


def add_narrow(mantissa: int, exponent: int, other: int, other_exponent: int) -> tuple[int, int] | None:
    """Add two narrow amounts; None if the sum, or an operand at the common exponent, does not fit."""
    if other == 0:
        return mantissa, exponent
    if mantissa == 0:
        return other, other_exponent
    common = min(exponent, other_exponent)
    left, left_fits = shift_narrow(mantissa, exponent - common)
    right, right_fits = shift_narrow(other, other_exponent - common)
    total = left + right
    if left_fits and right_fits and MIN_INT64 <= total <= MAX_INT64:
        return total, common
    return None


def add_wide(mantissa: int, exponent: int, other: int, other_exponent: int) -> tuple[int, int]:
    """Add two amounts exactly, at the lower of their exponents."""
    common = min(exponent, other_exponent)
    return rescale(mantissa, exponent, common) + rescale(other, other_exponent, common), common


def to_float(mantissa: int, exponent: int) -> float:
    """Convert to a float with the same rounding steps as upstream."""
    try:
        base = float(mantissa)
    except OverflowError:
        base = math.inf if mantissa > 0 else -math.inf
    return base if exponent == 0 else base * _float_power(exponent)


def _float_power(exponent: int) -> float:
    """Return 10**exponent like Go's math.Pow10: the product of two table entries, not the nearest float."""
    if exponent < -323:
        return 0.0
    if exponent > 308:
        return math.inf
    coarse, fine = divmod(abs(exponent), 32)
    if exponent > 0:
        return float(f"1e{32 * coarse}") * float(f"1e{fine}")
    return float(f"1e-{32 * coarse}") / float(f"1e{fine}")

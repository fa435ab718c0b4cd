"""The numbers inside a quantity: an integer times a power of ten, in one of two widths.

Kubernetes keeps a *narrow* amount in a 64-bit integer for as long as it fits and a *wide* one in an integer without
bounds when it does not. The two round and overflow differently, and the differences reach the user, so they are kept
apart here too. Everything in this module takes and returns plain integers.
"""

import math
import re
from typing import Final

from autoscaler.values.arithmetic import MAX_INT64, MIN_INT64, quotient, wrap32, wrap64

NANO: Final = -9
"""The finest exponent that a parsed amount keeps."""
MOST_DIGITS: Final = 4000
"""No amount is written out longer than this: `1e2000000000` is ten characters and would be a gigabyte of digits."""

_POWERS: Final[tuple[int, ...]] = tuple(10**places for places in range(19))
_WRAPPING_SHIFTS: Final = frozenset({1, 2, 3, 6, 9})
_INTEGER: Final = re.compile(r"([+-]?+)0*+([0-9]*+)")


class AmountTooLongError(ValueError):
    """Writing the amount out would take more than MOST_DIGITS digits."""


def parse_int64(text: str) -> int | None:
    """Read a decimal int64, sign and leading zeros allowed; None if it is anything else or does not fit."""
    match = _INTEGER.fullmatch(text)
    if match is None or not text[-1:].isdigit():
        return None
    sign, digits = match.groups()
    if len(digits) > 19:
        return None
    number = int(f"{sign}{digits or 0}")
    return number if MIN_INT64 <= number <= MAX_INT64 else None


def compare(mantissa: int, exponent: int, other: int, other_exponent: int) -> int:
    """Say whether the first amount is less than (-1), equal to (0) or greater than (1) the second."""
    shift = exponent - other_exponent
    if shift < 0:
        return -compare(other, other_exponent, mantissa, exponent)
    if shift > MOST_DIGITS and mantissa != 0:
        # Even a single unit, moved that far, outweighs every amount we are willing to write out.
        return 1 if mantissa > 0 else -1
    if mantissa != 0:
        mantissa *= 10**shift
    return (mantissa > other) - (mantissa < other)


def rescale(mantissa: int, exponent: int, to: int) -> int:
    """Write an amount with the lower exponent given, exactly."""
    shift = exponent - to
    if mantissa == 0 or shift == 0:
        return mantissa
    if shift + len(str(mantissa)) > MOST_DIGITS:
        raise AmountTooLongError(f"an amount of more than {MOST_DIGITS} digits")
    power: int = 10**shift
    return mantissa * power


def divide_away(mantissa: int, places: int) -> int:
    """Divide by a power of ten, rounding away from zero."""
    if places > MOST_DIGITS:
        return (mantissa > 0) - (mantissa < 0)
    divisor: int = 10**places
    magnitude = -(-abs(mantissa) // divisor)
    return magnitude if mantissa >= 0 else -magnitude


def shift_narrow(mantissa: int, places: int) -> tuple[int, bool]:
    """Multiply an int64 by a power of ten, and say whether the product fits.

    What is left of a product that does not fit depends on how upstream multiplies: the shifts by 1, 2, 3, 6 and 9
    places are one multiplication that wraps, the others go digit by digit and give up with zero.
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
    """Count a narrow amount in units of ten to the scale, rounded away from zero, overflowing as upstream does."""
    if exponent < scale:
        return divide_away(mantissa, scale - exponent)
    return shift_narrow(mantissa, wrap32(exponent - scale))[0]


def wide_at(mantissa: int, exponent: int, scale: int) -> int:
    """Count a wide amount in units of ten to the scale, with upstream's rounding: up, and of negatives one too many."""
    places = scale - exponent
    if mantissa == 0:
        return 0
    if places <= 0:
        # Upstream takes the power of ten through a float; beyond int64 amd64 converts that to the least integer.
        power = _POWERS[-places] if -places < len(_POWERS) else MIN_INT64
        return wrap64(wrap64(mantissa) * power)
    if mantissa < MAX_INT64 and places < 19:
        low, divisor = wrap64(mantissa), _POWERS[places]
        return quotient(low, divisor) + (low % divisor != 0)
    divisor = int(10**places)
    return wrap64(-(-mantissa // divisor))


def add_narrow(mantissa: int, exponent: int, other: int, other_exponent: int) -> tuple[int, int] | None:
    """Add two narrow amounts; None if the sum, or either of them at the common exponent, does not fit."""
    if other == 0:
        return mantissa, exponent
    if mantissa == 0:
        return other, other_exponent
    common = min(exponent, other_exponent)
    one, one_fits = shift_narrow(mantissa, exponent - common)
    two, two_fits = shift_narrow(other, other_exponent - common)
    total = one + two
    if one_fits and two_fits and MIN_INT64 <= total <= MAX_INT64:
        return total, common
    return None


def add_wide(mantissa: int, exponent: int, other: int, other_exponent: int) -> tuple[int, int]:
    """Add two amounts exactly, at the lower of their exponents."""
    common = min(exponent, other_exponent)
    return rescale(mantissa, exponent, common) + rescale(other, other_exponent, common), common


def to_float(mantissa: int, exponent: int) -> float:
    """Multiply out in floating point, each step rounded where upstream's is."""
    try:
        base = float(mantissa)
    except OverflowError:
        base = math.inf if mantissa > 0 else -math.inf
    return base if exponent == 0 else base * _float_power(exponent)


def _float_power(exponent: int) -> float:
    """Ten to the exponent as Go's math.Pow10 has it: the product of two table entries, not the nearest float."""
    if exponent < -323:
        return 0.0
    if exponent > 308:
        return math.inf
    coarse, fine = divmod(abs(exponent), 32)
    if exponent > 0:
        return float(f"1e{32 * coarse}") * float(f"1e{fine}")
    return float(f"1e-{32 * coarse}") / float(f"1e{fine}")

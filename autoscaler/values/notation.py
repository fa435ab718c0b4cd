"""How quantities are written: `500m`, `1.5Gi`, `12e6`. Text to numbers, and numbers to the canonical text.

A quantity remembers which of three formats it was written in and is printed in the same one. Some texts are kept as
they came (`+5`, `1.001`, `007`), by a test that is quicker than printing and does not quite mean "already canonical".
"""

import re
from enum import StrEnum
from typing import Final

from msgspec import Struct

from autoscaler.values import amount
from autoscaler.values.arithmetic import MAX_INT64, MIN_INT64, wrap32


class Format(StrEnum):
    """The three ways to write a quantity's size."""

    DECIMAL_SI = "DecimalSI"
    """Powers of a thousand by letter: 500m, 12k."""
    BINARY_SI = "BinarySI"
    """Powers of 1024 by letter: 64Mi."""
    DECIMAL_EXPONENT = "DecimalExponent"
    """A power of ten in figures: 12e6."""


DECIMAL_SI: Final = Format.DECIMAL_SI
BINARY_SI: Final = Format.BINARY_SI
DECIMAL_EXPONENT: Final = Format.DECIMAL_EXPONENT

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {power // 10: suffix for suffix, power in _BINARY.items()}

# Possessive: a digit belongs to the first part that can take it, and a long bad text is refused in one pass.
_PARTS: Final = re.compile(r"([+-]?+)(0*+)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?+[0-9]*+)")
_MALFORMED: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_BAD_NUMBER: Final = "unable to parse numeric part of quantity"
_BAD_SUFFIX: Final = "unable to parse quantity's suffix"
_NARROW_DIGITS: Final = 18


class QuantityError(ValueError):
    """The text is not a quantity; says so in Kubernetes' words."""


class Reading(Struct, frozen=True, gc=False):
    """What a text says: mantissa times ten to the exponent."""

    mantissa: int
    exponent: int
    format: Format
    wide: bool
    """Whether it was too long or too fine for the narrow path; see `amount`."""
    text: str | None
    """The text itself, where it is kept for printing."""


def read(text: str) -> Reading:
    """Parse a quantity."""
    match = _PARTS.fullmatch(text)
    if match is None or not text:
        raise QuantityError(_MALFORMED)
    sign, zeros, whole, fraction, suffix = match.groups(default="")
    power, form = _suffix(suffix)
    negative = sign == "-"
    if form is BINARY_SI:
        # One digit fewer than fits for every factor of ten in the suffix, and a fraction is never narrow.
        spare = 14 - len(whole or "0") - power * 3 // 10
        if spare >= 0 and not fraction:
            return _narrow_binary(text, int(whole or "0"), power, negative=negative)
        return _wide_binary(*_digits(zeros + whole, fraction), power, negative=negative)
    exponent = wrap32(power - len(fraction))
    shifted = (whole or "0") + fraction
    if len(shifted) <= _NARROW_DIGITS and exponent >= amount.NANO:
        return _narrow_decimal(text, shifted, exponent, form, negative=negative)
    mantissa, places = _digits(zeros + whole, fraction)
    return _wide_decimal(mantissa, wrap32(power - places), form, negative=negative)


def write(mantissa: int, exponent: int, form: Format, *, wide: bool) -> str:
    """Print the canonical form: no fraction, the largest suffix that allows it."""
    if mantissa == 0:
        return "0"
    if form is BINARY_SI:
        whole = _whole_binary(mantissa, exponent)
        if whole is not None:
            return _write_binary(whole, wide=wide)
        form = DECIMAL_SI
    return _write_decimal(mantissa, exponent, form)


def _suffix(suffix: str) -> tuple[int, Format]:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], DECIMAL_SI
    if suffix in _BINARY:
        return _BINARY[suffix], BINARY_SI
    exponent = amount.parse_int64(suffix[1:]) if suffix[0] in "eE" else None
    if exponent is None:
        raise QuantityError(_BAD_SUFFIX)
    return wrap32(exponent), DECIMAL_EXPONENT


def _digits(whole: str, fraction: str) -> tuple[int, int]:
    """Join the digits around the point: the integer they make, and how many were behind it."""
    digits = whole + fraction
    if not digits or len(digits) > amount.MOST_DIGITS:
        raise QuantityError(_BAD_NUMBER)
    return int(digits), len(fraction)


def _narrow_binary(text: str, whole: int, power: int, *, negative: bool) -> Reading:
    mantissa = whole << power
    kept = text if whole % 8 else None
    return Reading(-mantissa if negative else mantissa, 0, BINARY_SI, wide=False, text=kept)


def _narrow_decimal(text: str, digits: str, exponent: int, form: Format, *, negative: bool) -> Reading:
    mantissa = int(digits)
    kept = text if exponent % 3 == 0 and digits[0] != "0" and not digits.endswith("000") else None
    return Reading(-mantissa if negative else mantissa, exponent, form, wide=False, text=kept)


def _wide_decimal(mantissa: int, exponent: int, form: Format, *, negative: bool) -> Reading:
    mantissa, exponent = _to_nano(mantissa, exponent)
    return Reading(-mantissa if negative else mantissa, exponent, form, wide=True, text=None)


def _wide_binary(digits: int, places: int, power: int, *, negative: bool) -> Reading:
    mantissa, exponent = _to_nano(digits << power, -places)
    form = BINARY_SI
    if amount.compare(mantissa, exponent, MAX_INT64, 0) > 0:
        mantissa, exponent = MAX_INT64, 0
    elif mantissa and amount.compare(mantissa, exponent, 1, 0) < 0:
        form = DECIMAL_SI
    return Reading(-mantissa if negative else mantissa, exponent, form, wide=True, text=None)


def _to_nano(mantissa: int, exponent: int) -> tuple[int, int]:
    """Round up to whole nanos: who asks for something gets something. Zero keeps the exponent that it came with."""
    if mantissa == 0:
        return 0, exponent
    if exponent < amount.NANO:
        return amount.divide_away(mantissa, amount.NANO - exponent), amount.NANO
    try:
        return amount.rescale(mantissa, exponent, amount.NANO), amount.NANO
    except amount.AmountTooLongError:
        raise QuantityError(_BAD_NUMBER) from None


def _whole_binary(mantissa: int, exponent: int) -> int | None:
    """Give the amount as an integer, if printing it with a binary suffix would neither round nor puzzle."""
    if amount.compare(mantissa, exponent, -1024, 0) > 0 and amount.compare(mantissa, exponent, 1024, 0) < 0:
        return None
    if exponent >= 0:
        return amount.rescale(mantissa, exponent, 0)
    whole, rest = divmod(mantissa, 10**-exponent)
    return None if rest else whole


def _write_binary(whole: int, *, wide: bool) -> str:
    if whole == MIN_INT64 and not wide:
        return str(whole)  # upstream negates before it divides, and this one cannot be negated
    power = 0
    while whole % 1024 == 0:
        whole //= 1024
        power += 1
    return f"{whole}{_BINARY_SUFFIX.get(power, '')}"


def _write_decimal(mantissa: int, exponent: int, form: Format) -> str:
    digits = str(mantissa)
    significant = digits.rstrip("0")
    exponent = wrap32(exponent + len(digits) - len(significant))
    padding = exponent % 3
    exponent = wrap32(exponent - padding)
    return f"{significant}{'0' * padding}{_decimal_suffix(exponent, form)}"


def _decimal_suffix(exponent: int, form: Format) -> str:
    if form is DECIMAL_SI:
        return _DECIMAL_SUFFIX.get(exponent, "")  # upstream, too, leaves it out if there is no letter for it
    return f"e{exponent}" if exponent else ""

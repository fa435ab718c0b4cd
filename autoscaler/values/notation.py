"""Parses quantities such as `500m`, `1.5Gi` and `12e6`, and formats them canonically.

A quantity is formatted in the format in which it was parsed. Like upstream, parsing uses a fast check whether the text
is canonical already. The check also accepts some texts that are not (`+5`, `1.001`, `007`); these are shown unchanged.
"""

import re
from enum import StrEnum
from typing import Final

from msgspec import Struct

from autoscaler.values import amount
from autoscaler.values.arithmetic import MAX_INT64, MIN_INT64, wrap32


class Format(StrEnum):
    """The three formats of a quantity."""

    DECIMAL_SI = "DecimalSI"
    """Suffix for a power of 1000: 500m, 12k."""
    BINARY_SI = "BinarySI"
    """Suffix for a power of 1024: 64Mi."""
    DECIMAL_EXPONENT = "DecimalExponent"
    """Decimal exponent: 12e6."""


DECIMAL_SI: Final = Format.DECIMAL_SI
BINARY_SI: Final = Format.BINARY_SI
DECIMAL_EXPONENT: Final = Format.DECIMAL_EXPONENT

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {power // 10: suffix for suffix, power in _BINARY.items()}

# Possessive quantifiers prevent backtracking on long invalid input.
_PARTS: Final = re.compile(r"([+-]?+)(0*+)([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*+[-+]?+[0-9]*+)")
_MALFORMED: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_BAD_NUMBER: Final = "unable to parse numeric part of quantity"
_BAD_SUFFIX: Final = "unable to parse quantity's suffix"
_NARROW_DIGITS: Final = 18


class QuantityError(ValueError):
    """The text is not a valid quantity; the message is that of Kubernetes."""


class ParsedQuantity(Struct, frozen=True, gc=False):
    """A parsed quantity: mantissa times ten to the exponent."""

    mantissa: int
    exponent: int
    format: Format
    wide: bool
    """Whether the amount is wide; see `amount`."""
    text: str | None
    """The original text, if it is used for formatting."""


def parse(text: str) -> ParsedQuantity:
    match = _PARTS.fullmatch(text)
    if match is None or not text:
        raise QuantityError(_MALFORMED)
    sign, zeros, whole, fraction, suffix = match.groups(default="")
    power, form = _suffix(suffix)
    negative = sign == "-"
    if form is BINARY_SI:
        # Upstream reserves one digit per factor of ten in the suffix; an amount with a fraction is always wide.
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


def format_quantity(mantissa: int, exponent: int, form: Format, *, wide: bool) -> str:
    """Return the canonical form: no fraction, and the largest possible suffix."""
    if mantissa == 0:
        return "0"
    if form is BINARY_SI:
        whole = _whole_binary(mantissa, exponent)
        if whole is not None:
            return _format_binary(whole, wide=wide)
        form = DECIMAL_SI
    return _format_decimal(mantissa, exponent, form)


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
    """Return the integer of all digits, and the number of digits after the point."""
    digits = whole + fraction
    if not digits or len(digits) > amount.MAX_DIGITS:
        raise QuantityError(_BAD_NUMBER)
    return int(digits), len(fraction)


def _narrow_binary(text: str, whole: int, power: int, *, negative: bool) -> ParsedQuantity:
    mantissa = whole << power
    original = text if whole % 8 else None
    return ParsedQuantity(-mantissa if negative else mantissa, 0, BINARY_SI, wide=False, text=original)


def _narrow_decimal(text: str, digits: str, exponent: int, form: Format, *, negative: bool) -> ParsedQuantity:
    mantissa = int(digits)
    original = text if exponent % 3 == 0 and digits[0] != "0" and not digits.endswith("000") else None
    return ParsedQuantity(-mantissa if negative else mantissa, exponent, form, wide=False, text=original)


def _wide_decimal(mantissa: int, exponent: int, form: Format, *, negative: bool) -> ParsedQuantity:
    mantissa, exponent = _to_nano(mantissa, exponent)
    return ParsedQuantity(-mantissa if negative else mantissa, exponent, form, wide=True, text=None)


def _wide_binary(digits: int, places: int, power: int, *, negative: bool) -> ParsedQuantity:
    mantissa, exponent = _to_nano(digits << power, -places)
    form = BINARY_SI
    if amount.compare(mantissa, exponent, MAX_INT64, 0) > 0:
        mantissa, exponent = MAX_INT64, 0
    elif mantissa and amount.compare(mantissa, exponent, 1, 0) < 0:
        form = DECIMAL_SI
    return ParsedQuantity(-mantissa if negative else mantissa, exponent, form, wide=True, text=None)


def _to_nano(mantissa: int, exponent: int) -> tuple[int, int]:
    """Round away from zero to nanos, so that a non-zero amount stays non-zero; zero keeps its exponent."""
    if mantissa == 0:
        return 0, exponent
    if exponent < amount.NANO:
        return amount.divide_away(mantissa, amount.NANO - exponent), amount.NANO
    try:
        return amount.rescale(mantissa, exponent, amount.NANO), amount.NANO
    except amount.AmountTooLongError:
        raise QuantityError(_BAD_NUMBER) from None


def _whole_binary(mantissa: int, exponent: int) -> int | None:
    """Return the amount as an integer if it can be formatted with a binary suffix; otherwise None."""
    if amount.compare(mantissa, exponent, -1024, 0) > 0 and amount.compare(mantissa, exponent, 1024, 0) < 0:
        return None
    if exponent >= 0:
        return amount.rescale(mantissa, exponent, 0)
    whole, remainder = divmod(mantissa, 10**-exponent)
    return None if remainder else whole


def _format_binary(whole: int, *, wide: bool) -> str:
    if whole == MIN_INT64 and not wide:
        return str(whole)  # upstream negates before dividing, which overflows for this value
    power = 0
    while whole % 1024 == 0:
        whole //= 1024
        power += 1
    return f"{whole}{_BINARY_SUFFIX.get(power, '')}"


def _format_decimal(mantissa: int, exponent: int, form: Format) -> str:
    digits = str(mantissa)
    significant = digits.rstrip("0")
    exponent = wrap32(exponent + len(digits) - len(significant))
    padding = exponent % 3
    exponent = wrap32(exponent - padding)
    return f"{significant}{'0' * padding}{_decimal_suffix(exponent, form)}"


def _decimal_suffix(exponent: int, form: Format) -> str:
    if form is DECIMAL_SI:
        return _DECIMAL_SUFFIX.get(exponent, "")  # like upstream, no suffix if there is no letter for the exponent
    return f"e{exponent}" if exponent else ""

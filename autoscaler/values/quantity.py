"""Kubernetes quantities: parsed, compared, added and printed exactly as the API server does it.

The arithmetic of an autoscaler is in milli-units, so `Quantity.milli` and `Quantity.from_milli` are the hot path: the
first is remembered, the second postpones printing until someone asks for the text.
"""

from functools import total_ordering
from typing import Final, Self

from autoscaler.values import amount, notation
from autoscaler.values.arithmetic import wrap64
from autoscaler.values.notation import BINARY_SI, DECIMAL_EXPONENT, DECIMAL_SI, Format, QuantityError

__all__ = ["BINARY_SI", "DECIMAL_EXPONENT", "DECIMAL_SI", "Format", "Quantity", "QuantityError"]

_MILLI: Final = -3


@total_ordering
class Quantity:
    """An immutable amount with the format it is printed in; equal quantities are those of equal value.

    It is mantissa times ten to the exponent; `wide` as in `amount`, `text` what to print instead of the canonical form.
    """

    __slots__ = ("_milli", "_text", "exponent", "format", "mantissa", "wide")

    def __init__(
        self,
        mantissa: int,
        exponent: int = 0,
        fmt: Format = DECIMAL_SI,
        *,
        wide: bool = False,
        text: str | None = None,
    ) -> None:
        self.mantissa: Final = mantissa
        self.exponent: Final = exponent
        self.format: Final = fmt
        self.wide: Final = wide
        self._text = text
        self._milli: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a quantity such as `500m`, `1.5Gi` or `12e6`; raise QuantityError if it is none."""
        reading = notation.read(text)
        return cls(reading.mantissa, reading.exponent, reading.format, wide=reading.wide, text=reading.text)

    @classmethod
    def from_milli(cls, milli: int, fmt: Format = DECIMAL_SI) -> Self:
        """Make a quantity of so many thousandths, an int64."""
        quantity = cls(milli, _MILLI, fmt)
        quantity._milli = milli
        return quantity

    @classmethod
    def from_int(cls, number: int, fmt: Format = DECIMAL_SI) -> Self:
        """Make a quantity of a whole number, an int64."""
        return cls(number, 0, fmt)

    def milli(self) -> int:
        """Count the thousandths, rounded away from zero; an int64 that overflows as upstream's MilliValue does."""
        milli = self._milli
        if milli is None:
            milli = self._milli = self._at(_MILLI)
        return milli

    def value(self) -> int:
        """Count the whole units, rounded away from zero; an int64 that overflows as upstream's Value does."""
        return self._at(0)

    def as_int64(self) -> int | None:
        """Give the exact whole number where upstream's AsInt64 can; not of a fraction, not of a wide amount."""
        if self.wide or self.exponent < 0:
            return None
        number, fits = amount.shift_narrow(self.mantissa, self.exponent)
        return number if fits else None

    def to_float(self) -> float:
        """Give the nearest float, or nearly, as upstream's AsApproximateFloat64 does."""
        return amount.to_float(self.mantissa, self.exponent)

    def sign(self) -> int:
        """Say -1, 0 or 1."""
        return (self.mantissa > 0) - (self.mantissa < 0)

    def is_zero(self) -> bool:
        """Say whether it is nothing."""
        return self.mantissa == 0

    def cmp(self, other: "Quantity") -> int:
        """Compare by value: -1, 0 or 1."""
        return amount.compare(self.mantissa, self.exponent, other.mantissa, other.exponent)

    def canonical(self) -> str:
        """Print it afresh, whatever text it was parsed from."""
        return notation.write(self.mantissa, self.exponent, self.format, wide=self.wide)

    def __str__(self) -> str:
        if self._text is None:
            self._text = self.canonical()
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self.cmp(other) == 0 if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.cmp(other) < 0 if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        digits = str(self.mantissa)
        significant = digits.rstrip("0")
        return hash((significant, self.exponent + len(digits) - len(significant) if significant else 0))

    def __add__(self, other: "Quantity") -> "Quantity":
        return self._plus(other, other.mantissa)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self._plus(other, -other.mantissa)

    def __neg__(self) -> "Quantity":
        mantissa = -self.mantissa if self.wide else wrap64(-self.mantissa)
        return Quantity(mantissa, self.exponent, self.format, wide=self.wide)

    def _at(self, scale: int) -> int:
        count = amount.wide_at if self.wide else amount.narrow_at
        return count(self.mantissa, self.exponent, scale)

    def _plus(self, other: "Quantity", addend: int) -> "Quantity":
        # Nothing plus something is written as the something is.
        fmt = self.format if self.mantissa else other.format
        if not (self.wide or other.wide):
            narrow = amount.add_narrow(self.mantissa, self.exponent, wrap64(addend), other.exponent)
            if narrow is not None:
                return Quantity(*narrow, fmt)
        return Quantity(*amount.add_wide(self.mantissa, self.exponent, addend, other.exponent), fmt, wide=True)

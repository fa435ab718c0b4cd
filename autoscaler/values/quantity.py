"""Kubernetes quantities, parsed, compared, added and formatted exactly as by the API server.

The algorithm computes in milli-units, so `Quantity.milli` and `Quantity.from_milli` are the hot path: the first caches
its result, the second formats the text only on demand.
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
    """An immutable amount and its format; quantities are equal if their values are.

    The value is mantissa times ten to the exponent. ``wide`` is explained in `amount`; ``text`` replaces the canonical
    form when formatted.
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
        """Parse a quantity such as `500m`, `1.5Gi` or `12e6`; raise QuantityError if it is invalid."""
        parsed = notation.parse(text)
        return cls(parsed.mantissa, parsed.exponent, parsed.format, wide=parsed.wide, text=parsed.text)

    @classmethod
    def from_milli(cls, milli: int, fmt: Format = DECIMAL_SI) -> Self:
        quantity = cls(milli, _MILLI, fmt)
        quantity._milli = milli
        return quantity

    def milli(self) -> int:
        """Return the value in milli-units, rounded away from zero; overflows like upstream's MilliValue."""
        milli = self._milli
        if milli is None:
            milli = self._milli = self._at(_MILLI)
        return milli

    def value(self) -> int:
        """Return the value in units, rounded away from zero; overflows like upstream's Value."""
        return self._at(0)

    def as_int64(self) -> int | None:
        """Return the exact integer like upstream's AsInt64; None for a fraction or a wide amount."""
        if self.wide or self.exponent < 0:
            return None
        number, fits = amount.shift_narrow(self.mantissa, self.exponent)
        return number if fits else None

    def to_float(self) -> float:
        """Return an approximate float like upstream's AsApproximateFloat64."""
        return amount.to_float(self.mantissa, self.exponent)

    def sign(self) -> int:
        """Return -1, 0 or 1."""
        return (self.mantissa > 0) - (self.mantissa < 0)

    def cmp(self, other: "Quantity") -> int:
        """Compare by value; return -1, 0 or 1."""
        return amount.compare(self.mantissa, self.exponent, other.mantissa, other.exponent)

    def canonical(self) -> str:
        """Return the canonical form, independent of the parsed text."""
        return notation.format_quantity(self.mantissa, self.exponent, self.format, wide=self.wide)

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
        convert = amount.wide_at if self.wide else amount.narrow_at
        return convert(self.mantissa, self.exponent, scale)

    def _plus(self, other: "Quantity", addend: int) -> "Quantity":
        # As in upstream, the sum with zero has the format of the other operand.
        fmt = self.format if self.mantissa else other.format
        if not (self.wide or other.wide):
            narrow = amount.add_narrow(self.mantissa, self.exponent, wrap64(addend), other.exponent)
            if narrow is not None:
                return Quantity(*narrow, fmt)
        return Quantity(*amount.add_wide(self.mantissa, self.exponent, addend, other.exponent), fmt, wide=True)

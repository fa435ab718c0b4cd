"""Go's arithmetic on amd64: integers wrap around, division truncates, conversions never raise."""

import math
from typing import Final

MIN_INT32: Final = -(2**31)
MAX_INT32: Final = 2**31 - 1
MIN_INT64: Final = -(2**63)
MAX_INT64: Final = 2**63 - 1


def wrap32(number: int) -> int:
    """Return the low 32 bits as a signed integer."""
    if MIN_INT32 <= number <= MAX_INT32:
        return number
    return (number - MIN_INT32) % 2**32 + MIN_INT32


def wrap64(number: int) -> int:
    """Return the low 64 bits as a signed integer."""
    if MIN_INT64 <= number <= MAX_INT64:
        return number
    return (number - MIN_INT64) % 2**64 + MIN_INT64


def quotient(dividend: int, divisor: int) -> int:
    """Divide integers, truncating toward zero."""
    whole = abs(dividend) // abs(divisor)
    return whole if (dividend < 0) == (divisor < 0) else -whole


def ratio(dividend: float, divisor: float) -> float:
    """Divide floats; division by zero returns infinity or NaN instead of raising."""
    dividend, divisor = float(dividend), float(divisor)
    if divisor:
        return dividend / divisor
    if dividend == 0 or math.isnan(dividend):
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def truncated32(number: float) -> int:
    """Truncate to an int32; out of range and NaN give the minimum, as on amd64."""
    if -2147483649.0 < number < 2147483648.0:
        return int(number)
    return MIN_INT32


def ceiling32(number: float) -> int:
    """Round up to an int32; out of range and NaN give the minimum, as on amd64."""
    if -2147483649.0 < number <= 2147483647.0:
        return math.ceil(number)
    return MIN_INT32


def ceiling64(number: float) -> int:
    """Round up to an int64; out of range and NaN give the minimum, as on amd64."""
    if -9223372036854775808.0 <= number < 9223372036854775808.0:
        return math.ceil(number)
    return MIN_INT64

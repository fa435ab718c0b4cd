"""Go's arithmetic on amd64."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.values.arithmetic import (
    MAX_INT32,
    MAX_INT64,
    MIN_INT32,
    MIN_INT64,
    ceiling32,
    ceiling64,
    quotient,
    ratio,
    truncated32,
    wrap32,
    wrap64,
)

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("number", "wrapped"),
    [
        pytest.param(7, 7, id="small number"),
        pytest.param(MAX_INT32, MAX_INT32, id="maximum"),
        pytest.param(MAX_INT32 + 1, MIN_INT32, id="maximum plus one"),
        pytest.param(MIN_INT32 - 1, MAX_INT32, id="minimum minus one"),
        pytest.param(2**32 + 5, 5, id="wraps once"),
        pytest.param(-3 * 2**32 - 5, -5, id="wraps three times backwards"),
    ],
)
def test_wrap32_wraps_around(number, wrapped):
    assert wrap32(number) == wrapped


@pytest.mark.parametrize(
    ("number", "wrapped"),
    [
        pytest.param(MAX_INT64, MAX_INT64, id="maximum"),
        pytest.param(MAX_INT64 + 1, MIN_INT64, id="maximum plus one"),
        pytest.param(MIN_INT64 - 1, MAX_INT64, id="minimum minus one"),
        pytest.param(2**65 + 5, 5, id="wraps twice"),
    ],
)
def test_wrap64_wraps_around(number, wrapped):
    assert wrap64(number) == wrapped


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"),
    [
        pytest.param(7, 2, 3, id="both positive"),
        pytest.param(-7, 2, -3, id="negative dividend"),
        pytest.param(7, -2, -3, id="negative divisor"),
        pytest.param(-7, -2, 3, id="both negative"),
        pytest.param(0, -5, 0, id="zero"),
    ],
)
def test_quotient_truncates_toward_zero(dividend, divisor, expected):
    assert quotient(dividend, divisor) == expected


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"),
    [
        pytest.param(3, 2, 1.5, id="ordinary"),
        pytest.param(1, 0, INF, id="division by zero"),
        pytest.param(-1, 0, -INF, id="negative divided by zero"),
        pytest.param(1, -0.0, -INF, id="division by negative zero"),
        pytest.param(2**63 - 1, 2**63, 1.0, id="operands are converted to floats"),
    ],
)
def test_ratio_does_not_raise(dividend, divisor, expected):
    assert ratio(dividend, divisor) == expected


@pytest.mark.parametrize(("dividend", "divisor"), [(0, 0), (NAN, 0), (NAN, 1)])
def test_ratio_can_be_nan(dividend, divisor):
    assert math.isnan(ratio(dividend, divisor))


@pytest.mark.parametrize(
    ("number", "truncated", "ceiling"),
    [
        pytest.param(2.5, 2, 3, id="ordinary"),
        pytest.param(-2.5, -2, -2, id="negative"),
        pytest.param(2147483647.0, MAX_INT32, MAX_INT32, id="maximum"),
        pytest.param(2147483647.5, MAX_INT32, MIN_INT32, id="maximum plus a fraction"),
        pytest.param(2147483648.0, MIN_INT32, MIN_INT32, id="maximum plus one"),
        pytest.param(-2147483648.0, MIN_INT32, MIN_INT32, id="minimum"),
        pytest.param(-2147483648.5, MIN_INT32, MIN_INT32, id="minimum minus a fraction"),
        pytest.param(-1e300, MIN_INT32, MIN_INT32, id="far below the minimum"),
        pytest.param(INF, MIN_INT32, MIN_INT32, id="infinity"),
        pytest.param(NAN, MIN_INT32, MIN_INT32, id="NaN"),
    ],
)
def test_float_is_converted_to_int32(number, truncated, ceiling):
    assert (truncated32(number), ceiling32(number)) == (truncated, ceiling)


@pytest.mark.parametrize(
    ("number", "ceiling"),
    [
        pytest.param(2.5, 3, id="ordinary"),
        pytest.param(-9223372036854775808.0, MIN_INT64, id="minimum"),
        pytest.param(9223372036854775808.0, MIN_INT64, id="maximum plus one"),
        pytest.param(-1e300, MIN_INT64, id="far below the minimum"),
        pytest.param(INF, MIN_INT64, id="infinity"),
        pytest.param(NAN, MIN_INT64, id="NaN"),
    ],
)
def test_float_is_converted_to_int64(number, ceiling):
    assert ceiling64(number) == ceiling


@given(st.integers())
def test_wrapping_keeps_the_low_bits(number):
    for wrap, bits in ((wrap32, 32), (wrap64, 64)):
        assert -(2 ** (bits - 1)) <= wrap(number) < 2 ** (bits - 1)
        assert (wrap(number) - number) % 2**bits == 0


@given(st.integers(), st.integers().filter(bool))
def test_quotient_and_remainder_give_the_dividend(dividend, divisor):
    left = dividend - quotient(dividend, divisor) * divisor

    assert abs(left) < abs(divisor)
    assert left == 0 or (left < 0) == (dividend < 0)

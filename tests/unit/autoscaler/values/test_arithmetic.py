"""Numbers as Go computes them on amd64."""

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
        pytest.param(7, 7, id="a small number stays"),
        pytest.param(MAX_INT32, MAX_INT32, id="the largest stays"),
        pytest.param(MAX_INT32 + 1, MIN_INT32, id="one more is the smallest"),
        pytest.param(MIN_INT32 - 1, MAX_INT32, id="one less than the smallest is the largest"),
        pytest.param(2**32 + 5, 5, id="once round"),
        pytest.param(-3 * 2**32 - 5, -5, id="three times round, backwards"),
    ],
)
def test_32_bits_wrap(number, wrapped):
    assert wrap32(number) == wrapped


@pytest.mark.parametrize(
    ("number", "wrapped"),
    [
        pytest.param(MAX_INT64, MAX_INT64, id="the largest stays"),
        pytest.param(MAX_INT64 + 1, MIN_INT64, id="one more is the smallest"),
        pytest.param(MIN_INT64 - 1, MAX_INT64, id="one less than the smallest is the largest"),
        pytest.param(2**65 + 5, 5, id="twice round"),
    ],
)
def test_64_bits_wrap(number, wrapped):
    assert wrap64(number) == wrapped


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"),
    [
        pytest.param(7, 2, 3, id="down when positive"),
        pytest.param(-7, 2, -3, id="up when negative"),
        pytest.param(7, -2, -3, id="up when the divisor is negative"),
        pytest.param(-7, -2, 3, id="down when both are"),
        pytest.param(0, -5, 0, id="nothing"),
    ],
)
def test_division_truncates_towards_zero(dividend, divisor, expected):
    assert quotient(dividend, divisor) == expected


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"),
    [
        pytest.param(3, 2, 1.5, id="an ordinary one"),
        pytest.param(1, 0, INF, id="by zero is infinite"),
        pytest.param(-1, 0, -INF, id="a negative by zero is negative infinity"),
        pytest.param(1, -0.0, -INF, id="by negative zero too"),
        pytest.param(2**63 - 1, 2**63, 1.0, id="operands become floats first"),
    ],
)
def test_a_ratio_never_raises(dividend, divisor, expected):
    assert ratio(dividend, divisor) == expected


@pytest.mark.parametrize(("dividend", "divisor"), [(0, 0), (NAN, 0), (NAN, 1)])
def test_a_ratio_may_not_be_a_number(dividend, divisor):
    assert math.isnan(ratio(dividend, divisor))


@pytest.mark.parametrize(
    ("number", "truncated", "ceiling"),
    [
        pytest.param(2.5, 2, 3, id="an ordinary one"),
        pytest.param(-2.5, -2, -2, id="a negative one"),
        pytest.param(2147483647.0, MAX_INT32, MAX_INT32, id="the largest"),
        pytest.param(2147483647.5, MAX_INT32, MIN_INT32, id="a fraction more: rounded up it is out of range"),
        pytest.param(2147483648.0, MIN_INT32, MIN_INT32, id="one more"),
        pytest.param(-2147483648.0, MIN_INT32, MIN_INT32, id="the smallest"),
        pytest.param(-2147483648.5, MIN_INT32, MIN_INT32, id="a fraction less"),
        pytest.param(-1e300, MIN_INT32, MIN_INT32, id="far below"),
        pytest.param(INF, MIN_INT32, MIN_INT32, id="infinity"),
        pytest.param(NAN, MIN_INT32, MIN_INT32, id="not a number"),
    ],
)
def test_floats_become_32_bits(number, truncated, ceiling):
    assert (truncated32(number), ceiling32(number)) == (truncated, ceiling)


@pytest.mark.parametrize(
    ("number", "ceiling"),
    [
        pytest.param(2.5, 3, id="an ordinary one"),
        pytest.param(-9223372036854775808.0, MIN_INT64, id="the smallest"),
        pytest.param(9223372036854775808.0, MIN_INT64, id="one more than the largest"),
        pytest.param(-1e300, MIN_INT64, id="far below"),
        pytest.param(INF, MIN_INT64, id="infinity"),
        pytest.param(NAN, MIN_INT64, id="not a number"),
    ],
)
def test_floats_become_64_bits(number, ceiling):
    assert ceiling64(number) == ceiling


@given(st.integers())
def test_wrapping_keeps_the_low_bits(number):
    for wrap, bits in ((wrap32, 32), (wrap64, 64)):
        assert -(2 ** (bits - 1)) <= wrap(number) < 2 ** (bits - 1)
        assert (wrap(number) - number) % 2**bits == 0


@given(st.integers(), st.integers().filter(bool))
def test_a_quotient_and_what_is_left_make_the_dividend(dividend, divisor):
    left = dividend - quotient(dividend, divisor) * divisor

    assert abs(left) < abs(divisor)
    assert left == 0 or (left < 0) == (dividend < 0)

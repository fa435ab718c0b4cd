import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.sample import NotFiniteError, RangeError, milli_of

MAX_VALUE = 9_200_000_000_000_000


@pytest.mark.parametrize(
    ("value", "milli"),
    [
        pytest.param(1.1, 1100, id="float above its decimal notation"),
        pytest.param(0.0001, 1, id="below a thousandth"),
        pytest.param(5e-324, 1, id="the smallest float"),
        pytest.param(0.0, 0, id="zero"),
        pytest.param(-0.0, 0, id="negative zero"),
        pytest.param(2.0, 2000, id="whole float"),
        pytest.param(2, 2000, id="integer"),
        pytest.param("12.3456", 12346, id="text, rounded up"),
        pytest.param(Decimal("0.0010"), 1, id="Decimal"),
        pytest.param(float(MAX_VALUE), MAX_VALUE * 1000, id="maximum"),
        pytest.param(123456789012.345, 123456789012345, id="many digits"),
    ],
)
def test_value_is_converted_to_thousandths_rounded_up(value: float, milli: int):
    assert milli_of(value) == milli


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "NaN", "ten", ""])
def test_value_that_is_not_a_finite_number_raises_not_finite_error(value: float):
    with pytest.raises(NotFiniteError):
        milli_of(value)


@pytest.mark.parametrize(
    ("value", "message"), [(-1, "negative"), (-1e-9, "negative"), (9.3e15, "above 9.2e"), (1e30, "above")]
)
def test_value_outside_the_range_of_an_hpa_raises_range_error(value: float, message: str):
    with pytest.raises(RangeError, match=message):
        milli_of(value)


@given(st.floats(min_value=0, max_value=MAX_VALUE))
def test_rounding_up_is_exact_for_the_shortest_decimal_notation(value: float):
    assert milli_of(value) == math.ceil(Fraction(repr(value)) * 1000)

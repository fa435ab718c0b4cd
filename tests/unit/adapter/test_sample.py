import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.sample import NotFiniteError, RangeError, milli_of

LARGEST = 9_200_000_000_000_000


@pytest.mark.parametrize(
    ("value", "milli"),
    [
        pytest.param(1.1, 1100, id="the nearest float to 1.1 is above it, and still not 1101"),
        pytest.param(0.0001, 1, id="anything at all is at least a thousandth"),
        pytest.param(5e-324, 1, id="the smallest float"),
        pytest.param(0.0, 0, id="nothing"),
        pytest.param(-0.0, 0, id="nothing, with a sign"),
        pytest.param(2.0, 2000, id="a whole number"),
        pytest.param(2, 2000, id="an integer"),
        pytest.param("12.3456", 12346, id="text, rounded up"),
        pytest.param(Decimal("0.0010"), 1, id="a decimal"),
        pytest.param(float(LARGEST), LARGEST * 1000, id="the largest"),
        pytest.param(123456789012.345, 123456789012345, id="many digits"),
    ],
)
def test_numbers_become_thousandths_rounded_up(value: float, milli: int):
    assert milli_of(value) == milli


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "NaN", "ten", ""])
def test_what_is_no_number_is_refused(value: float):
    with pytest.raises(NotFiniteError):
        milli_of(value)


@pytest.mark.parametrize(
    ("value", "why"), [(-1, "negative"), (-1e-9, "negative"), (9.3e15, "above 9.2e"), (1e30, "above")]
)
def test_what_an_hpa_would_misread_is_refused(value: float, why: str):
    with pytest.raises(RangeError, match=why):
        milli_of(value)


@given(st.floats(min_value=0, max_value=LARGEST))
def test_rounding_up_is_exact_in_the_digits_that_are_printed(value: float):
    assert milli_of(value) == math.ceil(Fraction(repr(value)) * 1000)

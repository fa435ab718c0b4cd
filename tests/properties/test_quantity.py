"""Properties of quantities: formatting and parsing are inverse, order and sums equal those of fractions."""

from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from autoscaler.values.quantity import Format, Quantity

no_deadline = settings(deadline=None)  # tests must pass on slow machines

MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1

mantissas = st.integers(-(10**17), 10**17) | st.integers(MIN_INT64 + 1, MAX_INT64) | st.integers(-(10**30), 10**30)
suffixes = st.sampled_from([*"numkMGTPE", "", "Ki", "Mi", "Gi", "Ti", "e3", "E-3", "e+6"])


@st.composite
def texts(draw):
    digits = str(draw(mantissas))
    fraction = draw(st.sampled_from(["", ".", ".5", ".25", ".001", ".123456789"]))
    return digits + fraction + draw(suffixes)


quantities = texts().map(Quantity.parse)
int64s = st.integers(MIN_INT64, MAX_INT64)


def fraction_of(quantity):
    return Fraction(quantity.mantissa) * Fraction(10) ** quantity.exponent


def has_suffix(quantity):
    """Return whether upstream formats the canonical form with the suffix that it needs."""
    return quantity.format is Format.DECIMAL_EXPONENT or abs(fraction_of(quantity)) < 10**21


@no_deadline
@given(quantities.filter(has_suffix))
def test_formatted_quantity_parses_to_an_equal_quantity(quantity):
    assert Quantity.parse(str(quantity)) == quantity
    assert Quantity.parse(quantity.canonical()) == quantity


@no_deadline
@given(quantities.filter(has_suffix))
def test_canonical_form_is_idempotent(quantity):
    canonical = Quantity.parse(quantity.canonical())
    assert canonical.canonical() == quantity.canonical()


@no_deadline
@given(int64s, st.sampled_from(list(Format)))
@example(MIN_INT64, Format.BINARY_SI)
def test_milli_value_survives_formatting_and_parsing(milli, form):
    quantity = Quantity.from_milli(milli, form)
    assert quantity.milli() == milli
    assert Quantity.parse(str(quantity)) == quantity


@no_deadline
@given(quantities, quantities)
def test_order_equals_that_of_fractions(first, second):
    a, b = fraction_of(first), fraction_of(second)
    assert first.cmp(second) == (a > b) - (a < b)
    assert (first == second, first < second, first <= second) == (a == b, a < b, a <= b)
    if first == second:
        assert hash(first) == hash(second)


@no_deadline
@given(quantities, quantities)
def test_sums_and_differences_are_exact(first, second):
    assert fraction_of(first + second) == fraction_of(first) + fraction_of(second)
    assert fraction_of(first - second) == fraction_of(first) - fraction_of(second)


@no_deadline
@given(quantities)
def test_a_quantity_and_its_negative_cancel(quantity):
    assert (quantity + -quantity).sign() == 0
    assert (-quantity).sign() == -quantity.sign()


@no_deadline
@given(quantities.filter(lambda quantity: not quantity.wide and abs(fraction_of(quantity)) < 10**15))
def test_milli_value_is_rounded_away_from_zero(quantity):
    exact = fraction_of(quantity) * 1000
    count = quantity.milli()
    assert abs(exact) <= abs(count) < abs(exact) + 1
    assert count * exact >= 0

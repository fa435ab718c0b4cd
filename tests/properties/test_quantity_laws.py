"""Laws of quantities, over all sorts of them: printing is undone by parsing, order and sums are those of fractions."""

from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from autoscaler.values.quantity import Format, Quantity

unhurried = settings(deadline=None)  # a slow machine breaks no law

LEAST, GREATEST = -(2**63), 2**63 - 1

mantissas = st.integers(-(10**17), 10**17) | st.integers(LEAST + 1, GREATEST) | st.integers(-(10**30), 10**30)
suffixes = st.sampled_from([*"numkMGTPE", "", "Ki", "Mi", "Gi", "Ti", "e3", "E-3", "e+6"])


@st.composite
def texts(draw):
    digits = str(draw(mantissas))
    fraction = draw(st.sampled_from(["", ".", ".5", ".25", ".001", ".123456789"]))
    return digits + fraction + draw(suffixes)


quantities = texts().map(Quantity.parse)
int64s = st.integers(LEAST, GREATEST)


def exactly(quantity):
    return Fraction(quantity.mantissa) * Fraction(10) ** quantity.exponent


def has_a_suffix_for_it(quantity):
    """Whether the canonical form is not one of those that upstream prints without the suffix they need."""
    return quantity.format is Format.DECIMAL_EXPONENT or abs(exactly(quantity)) < 10**21


@unhurried
@given(quantities.filter(has_a_suffix_for_it))
def test_what_is_printed_is_read_back_as_the_same_amount(quantity):
    assert Quantity.parse(str(quantity)) == quantity
    assert Quantity.parse(quantity.canonical()) == quantity


@unhurried
@given(quantities.filter(has_a_suffix_for_it))
def test_the_canonical_form_is_its_own_canonical_form(quantity):
    canonical = Quantity.parse(quantity.canonical())
    assert canonical.canonical() == quantity.canonical()


@unhurried
@given(int64s, st.sampled_from(list(Format)))
@example(LEAST, Format.BINARY_SI)
def test_thousandths_survive_printing_and_reading(milli, form):
    quantity = Quantity.from_milli(milli, form)
    assert quantity.milli() == milli
    assert Quantity.parse(str(quantity)) == quantity


@unhurried
@given(quantities, quantities)
def test_order_is_that_of_the_amounts(one, other):
    a, b = exactly(one), exactly(other)
    assert one.cmp(other) == (a > b) - (a < b)
    assert (one == other, one < other, one <= other) == (a == b, a < b, a <= b)
    if one == other:
        assert hash(one) == hash(other)


@unhurried
@given(quantities, quantities)
def test_sums_and_differences_are_exact(one, other):
    assert exactly(one + other) == exactly(one) + exactly(other)
    assert exactly(one - other) == exactly(one) - exactly(other)


@unhurried
@given(quantities)
def test_a_quantity_and_its_negative_cancel(quantity):
    assert (quantity + -quantity).is_zero()
    assert (-quantity).sign() == -quantity.sign()


@unhurried
@given(quantities.filter(lambda quantity: not quantity.wide and abs(exactly(quantity)) < 10**15))
def test_an_ordinary_amount_is_counted_in_thousandths_rounded_away_from_zero(quantity):
    exact = exactly(quantity) * 1000
    count = quantity.milli()
    assert abs(exact) <= abs(count) < abs(exact) + 1
    assert count * exact >= 0

"""Quantities: the ordinary ones, the odd ones that Kubernetes accepts, and the ones that it gets wrong."""

import math

import pytest

from autoscaler.values.amount import AmountTooLongError
from autoscaler.values.quantity import BINARY_SI, DECIMAL_EXPONENT, DECIMAL_SI, Quantity, QuantityError

MALFORMED = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
BAD_NUMBER = "unable to parse numeric part of quantity"
BAD_SUFFIX = "unable to parse quantity's suffix"
LEAST = -(2**63)


@pytest.mark.parametrize(
    ("text", "printed", "milli"),
    [
        pytest.param("0", "0", 0, id="nothing"),
        pytest.param("500m", "500m", 500, id="half a processor"),
        pytest.param("1.5", "1500m", 1500, id="a fraction is printed in thousandths"),
        pytest.param("1000m", "1", 1000, id="a thousand thousandths are one"),
        pytest.param("1000000", "1M", 10**9, id="the largest suffix that needs no fraction"),
        pytest.param("64Mi", "64Mi", 2**26 * 1000, id="binary stays binary"),
        pytest.param("1.5Gi", "1536Mi", 3 * 2**29 * 1000, id="a binary fraction in the next smaller suffix"),
        pytest.param("1000Ki", "1000Ki", 1024 * 10**6, id="a thousand is nothing special in binary"),
        pytest.param("512Ki", "512Ki", 2**19 * 1000, id="a multiple of eight is printed afresh"),
        pytest.param("1000.5Ki", "1024512", 1024512000, id="binary without a suffix that fits"),
        pytest.param("12e6", "12e6", 12 * 10**9, id="an exponent stays an exponent"),
        pytest.param("1.5e0", "1500e-3", 1500, id="an exponent may be negative"),
        pytest.param("1500e1", "15e3", 15 * 10**6, id="exponents are multiples of three"),
        pytest.param("+5", "+5", 5000, id="a plus sign is kept"),
        pytest.param("007", "007", 7000, id="leading zeros are kept"),
        pytest.param("1.001", "1.001", 1001, id="three decimals are kept"),
        pytest.param("-0.1m", "-100u", -1, id="finer than a thousandth rounds away from zero"),
        pytest.param("0.1n", "1n", 1, id="finer than a nano is a nano"),
        pytest.param("0.5Ki", "512", 512000, id="a small binary amount is printed in decimal"),
        pytest.param("0.0001Ki", "102400u", 103, id="less than one in binary becomes decimal"),
        pytest.param("1.1Ki", "1126400m", 1126400, id="a binary fraction that does not come out becomes decimal"),
        pytest.param("100Ei", "9223372036854775807", -1000, id="binary has a ceiling, decimal milli wraps"),
        pytest.param("1000E", "1", 0, id="a power without a letter is printed without one"),
        pytest.param("m", "0", 0, id="a suffix alone is nothing"),
        pytest.param(".", "0", 0, id="a point alone is nothing"),
        pytest.param("+", "0", 0, id="a sign alone is nothing"),
        pytest.param("-100Ti", "-100Ti", -8568098291071, id="upstream wraps a long negative"),
        pytest.param("-1.0000000001", "-1000000001n", -999, id="upstream rounds a wide negative up"),
        pytest.param("100000000000000000000", "100E", 200376420520689664, id="a long number wraps"),
        pytest.param("9223372036854775807", "9223372036854775807", -1000, id="the greatest integer wraps"),
        pytest.param("1e18", "1e18", 0, id="an overflow digit by digit is zero"),
        pytest.param("0e-20", "0", 0, id="nothing in the finest unit"),
    ],
)
def test_a_quantity_is_read_printed_and_counted_in_thousandths(text, printed, milli):
    quantity = Quantity.parse(text)
    assert (str(quantity), quantity.milli()) == (printed, milli)
    assert quantity.milli() == milli
    assert repr(quantity) == f"Quantity({printed!r})"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("", MALFORMED, id="nothing at all"),
        pytest.param("1 Gi", MALFORMED, id="a space"),
        pytest.param("5\n", MALFORMED, id="a newline at the end"),
        pytest.param("\N{ARABIC-INDIC DIGIT ONE}", MALFORMED, id="digits of another script"),
        pytest.param("--1", BAD_SUFFIX, id="two signs"),
        pytest.param("1.2.3", MALFORMED, id="two points"),
        pytest.param("1Kii", BAD_SUFFIX, id="an unknown suffix"),
        pytest.param("1e", BAD_SUFFIX, id="an exponent without figures"),
        pytest.param("1e+", BAD_SUFFIX, id="an exponent of only a sign"),
        pytest.param("1e9223372036854775808", BAD_SUFFIX, id="an exponent beyond 64 bits"),
        pytest.param("1e99999999999999999999", BAD_SUFFIX, id="an exponent far beyond 64 bits"),
        pytest.param("Ei", BAD_NUMBER, id="a large suffix alone"),
        pytest.param("e-20", BAD_NUMBER, id="a small exponent alone"),
        pytest.param("9" * 4001, BAD_NUMBER, id="more digits than we are willing to hold"),
        pytest.param("9999999999999999999e99999", BAD_NUMBER, id="few characters that would be many digits"),
    ],
)
def test_what_is_not_a_quantity_is_refused_in_kubernetes_words(text, error):
    with pytest.raises(QuantityError) as caught:
        Quantity.parse(text)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("text", "printed", "milli"),
    [
        pytest.param("1e4294967299", "1e4294967299", 10**6, id="its exponent wraps round to three"),
        pytest.param("10e2147483647", "10e2147483647", 10, id="its exponent has no room to grow"),
        pytest.param("1e-2000000000", "1e-9", 1, id="it is tiny, not expensive"),
    ],
)
def test_an_exponent_is_a_32_bit_integer(text, printed, milli):
    quantity = Quantity.parse(text)
    assert (str(quantity), quantity.milli()) == (printed, milli)


@pytest.mark.parametrize(
    ("text", "value", "integer"),
    [
        pytest.param("7", 7, 7, id="a whole number"),
        pytest.param("7k", 7000, 7000, id="thousands"),
        pytest.param("1.5", 2, None, id="a fraction rounds up and is no integer"),
        pytest.param("-1.5", -2, None, id="a negative fraction rounds down"),
        pytest.param("100E", 0, None, id="too large: one multiplication after the other"),
        pytest.param("10000000000G", -8446744073709551616, None, id="too large: a single multiplication"),
        pytest.param("10000000000k", 10**13, 10**13, id="large, but it fits"),
        pytest.param("1e40", 0, None, id="far too large is nothing"),
        pytest.param("1e1", 10, 10, id="tens"),
        pytest.param("-1e19", 0, None, id="too small is nothing"),
        pytest.param("99999999999999999999", 7766279631452241919, None, id="too long for the narrow path"),
        pytest.param("99999999999999999999.5", 7766279631452241920, None, id="too long, and rounded up"),
    ],
)
def test_whole_units_are_counted(text, value, integer):
    quantity = Quantity.parse(text)
    assert (quantity.value(), quantity.as_int64()) == (value, integer)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("0.1", 0.1, id="a tenth"),
        pytest.param("1e3", 1000.0, id="a thousand"),
        pytest.param("1e-3", 0.001, id="a thousandth"),
        pytest.param("3e40", 3 * (1e32 * 1e8), id="beyond the first table of powers"),
        pytest.param("5", 5.0, id="no power at all"),
        pytest.param("1e400", math.inf, id="beyond a float"),
        pytest.param("1234567890123456789e400", math.inf, id="too many digits for a float"),
        pytest.param("-1234567890123456789e400", -math.inf, id="too many digits, negative"),
        pytest.param("0e-400", 0.0, id="nothing, and less than that"),
    ],
)
def test_a_float_is_rounded_where_upstream_rounds(text, number):
    assert Quantity.parse(text).to_float() == number


def test_nothing_times_infinity_is_not_a_number():
    assert math.isnan(Quantity.parse("0e400").to_float())


@pytest.mark.parametrize(
    ("number", "milli_decimal", "milli_binary", "decimal", "binary"),
    [
        pytest.param(0, "0", "0", "0", "0", id="nothing"),
        pytest.param(1500, "1500m", "1500m", "1500", "1500", id="a fraction"),
        pytest.param(2**27 * 1000, "134217728", "128Mi", "134217728k", "125Gi", id="memory"),
        pytest.param(-(2**20), "-1048576m", "-1048576m", "-1048576", "-1Mi", id="a negative"),
        pytest.param(
            LEAST, "-9223372036854775808m", "-9223372036854775808m", str(LEAST), str(LEAST), id="the least integer"
        ),
    ],
)
def test_integers_are_printed_in_the_format_asked_for(number, milli_decimal, milli_binary, decimal, binary):
    assert str(Quantity.from_milli(number)) == milli_decimal
    assert str(Quantity.from_milli(number, BINARY_SI)) == milli_binary
    assert str(Quantity.from_int(number)) == decimal
    assert str(Quantity.from_int(number, BINARY_SI)) == binary
    assert Quantity.from_milli(number).milli() == number


@pytest.mark.parametrize(
    ("one", "other", "total", "difference"),
    [
        pytest.param("1", "1", "2", "0", id="equal exponents"),
        pytest.param("1", "500m", "1500m", "500m", id="the finer exponent wins"),
        pytest.param("500m", "1", "1500m", "-500m", id="the finer exponent wins, the other way round"),
        pytest.param("1Gi", "1Gi", "2Gi", "0", id="binary stays binary"),
        pytest.param("500M", "1Gi", "1573741824", "-573741824", id="the first one's format is kept"),
        pytest.param("0", "1Gi", "1Gi", "-1Gi", id="nothing takes the other's format"),
        pytest.param("1Gi", "0", "1Gi", "1Gi", id="nothing added changes nothing"),
        pytest.param("1e30", "1", "1000000000000000000000000000001", "999999999999999999999999999999", id="too wide"),
        pytest.param("9E", "9E", "18E", "0", id="a sum that overflows only in units"),
        pytest.param("1.0000000001", "1", "2000000001n", "1n", id="one of them wide"),
        pytest.param("0e-20", "-1.5", "-1500m", "1500m", id="nothing in a very fine unit"),
    ],
)
def test_sum_and_difference(one, other, total, difference):
    a, b = Quantity.parse(one), Quantity.parse(other)
    assert str(a + b) == total
    assert str(a - b) == difference


def test_a_sum_beyond_64_bits_is_kept_whole():
    assert str(Quantity.from_int(2**62) + Quantity.from_int(2**62)) == "9223372036854775808"
    assert str(Quantity.from_int(LEAST, BINARY_SI) - Quantity.from_int(1, BINARY_SI)) == "-9223372036854775809"
    assert str(Quantity.parse("-9223372036854775809") + Quantity.parse("1")) == str(LEAST)


def test_a_wide_amount_may_use_the_largest_binary_suffix_where_a_narrow_one_cannot():
    eight = Quantity.from_int(2**62, BINARY_SI) + Quantity.from_int(2**62, BINARY_SI)
    assert str(-eight) == "-8Ei"
    assert str(Quantity.from_int(LEAST, BINARY_SI)) == str(LEAST)


def test_the_least_integer_cannot_be_negated():
    least = Quantity.from_int(LEAST)
    assert str(-least) == str(LEAST)
    assert str(Quantity.from_int(1) - least) == str(LEAST + 1)
    assert (Quantity.from_int(0) - Quantity.from_int(LEAST)).value() == LEAST
    assert least.milli() == 0


def test_a_wide_amount_is_negated_exactly():
    assert str(-Quantity.parse("1.0000000001")) == "-1000000001n"


@pytest.mark.parametrize(
    ("one", "other", "value", "milli"),
    [
        pytest.param("1e40", "1e20", LEAST, LEAST, id="beyond every power of ten that fits"),
        pytest.param("1e22", "1e3", 1864712049423025128, 1590897978360414784, id="wrapped"),
        pytest.param("0e-30", "-1.5", -1, -1500, id="finer than any power of ten that fits"),
    ],
)
def test_a_wide_sum_is_counted_as_upstream_counts_it(one, other, value, milli):
    total = Quantity.parse(one) + Quantity.parse(other)
    assert total.wide
    assert (total.value(), total.milli()) == (value, milli)


def test_a_sum_too_long_to_write_out_is_refused():
    with pytest.raises(AmountTooLongError):
        Quantity.parse("1e9999") + Quantity.parse("1")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param("1", "1000m", 0, id="equal, differently written"),
        pytest.param("1Ki", "1k", 1, id="1024 is more than a thousand"),
        pytest.param("-1", "1", -1, id="negative is less than positive"),
        pytest.param("1e2000000000", "9E", 1, id="enormous is more"),
        pytest.param("-1e2000000000", "9E", -1, id="enormously negative is less"),
        pytest.param("0e2000000000", "0", 0, id="nothing is nothing in any unit"),
    ],
)
def test_comparison_is_by_value(one, other, expected):
    a, b = Quantity.parse(one), Quantity.parse(other)
    assert (a.cmp(b), b.cmp(a)) == (expected, -expected)
    assert ((a == b), (a < b), (a >= b)) == (expected == 0, expected < 0, expected >= 0)
    assert (hash(a) == hash(b)) == (expected == 0)


def test_a_quantity_is_not_comparable_with_anything_else():
    assert Quantity.parse("1") != 1
    with pytest.raises(TypeError):
        _ = Quantity.parse("1") < 1


@pytest.mark.parametrize(
    ("text", "sign", "form"),
    [
        pytest.param("-2", -1, DECIMAL_SI, id="negative"),
        pytest.param("0Ki", 0, BINARY_SI, id="zero"),
        pytest.param("3e1", 1, DECIMAL_EXPONENT, id="positive"),
    ],
)
def test_sign_and_format(text, sign, form):
    quantity = Quantity.parse(text)
    assert (quantity.sign(), quantity.is_zero(), quantity.format) == (sign, sign == 0, form)


def test_the_canonical_form_forgets_the_text():
    assert Quantity.parse("007").canonical() == "7"

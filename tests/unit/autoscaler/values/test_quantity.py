"""Quantities, including unusual input that Kubernetes accepts and its arithmetic errors."""

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
        pytest.param("0", "0", 0, id="zero"),
        pytest.param("500m", "500m", 500, id="milli suffix"),
        pytest.param("1.5", "1500m", 1500, id="fraction is formatted in milli"),
        pytest.param("1000m", "1", 1000, id="1000 milli are one"),
        pytest.param("1000000", "1M", 10**9, id="largest suffix without a fraction"),
        pytest.param("64Mi", "64Mi", 2**26 * 1000, id="binary format is kept"),
        pytest.param("1.5Gi", "1536Mi", 3 * 2**29 * 1000, id="binary fraction in the next smaller suffix"),
        pytest.param("1000Ki", "1000Ki", 1024 * 10**6, id="1000 in binary format"),
        pytest.param("512Ki", "512Ki", 2**19 * 1000, id="multiple of eight is reformatted"),
        pytest.param("1000.5Ki", "1024512", 1024512000, id="binary without suffix"),
        pytest.param("12e6", "12e6", 12 * 10**9, id="exponent format is kept"),
        pytest.param("1.5e0", "1500e-3", 1500, id="negative exponent"),
        pytest.param("1500e1", "15e3", 15 * 10**6, id="exponent is a multiple of three"),
        pytest.param("+5", "+5", 5000, id="plus sign is kept"),
        pytest.param("007", "007", 7000, id="leading zeros are kept"),
        pytest.param("1.001", "1.001", 1001, id="three decimals are kept"),
        pytest.param("-0.1m", "-100u", -1, id="below milli rounds away from zero"),
        pytest.param("0.1n", "1n", 1, id="below nano rounds to nano"),
        pytest.param("0.5Ki", "512", 512000, id="small binary amount is formatted as decimal"),
        pytest.param("0.0001Ki", "102400u", 103, id="binary amount below one becomes decimal"),
        pytest.param("1.1Ki", "1126400m", 1126400, id="inexact binary fraction becomes decimal"),
        pytest.param("100Ei", "9223372036854775807", -1000, id="binary is capped and milli wraps"),
        pytest.param("1000E", "1", 0, id="exponent without suffix letter"),
        pytest.param("m", "0", 0, id="suffix only"),
        pytest.param(".", "0", 0, id="point only"),
        pytest.param("+", "0", 0, id="sign only"),
        pytest.param("-100Ti", "-100Ti", -8568098291071, id="long negative wraps like upstream"),
        pytest.param("-1.0000000001", "-1000000001n", -999, id="wide negative rounds up like upstream"),
        pytest.param("100000000000000000000", "100E", 200376420520689664, id="long number wraps"),
        pytest.param("9223372036854775807", "9223372036854775807", -1000, id="maximum int64 wraps"),
        pytest.param("1e18", "1e18", 0, id="overflow digit by digit is zero"),
        pytest.param("0e-20", "0", 0, id="zero with a small exponent"),
    ],
)
def test_quantity_is_parsed_formatted_and_converted_to_milli(text, printed, milli):
    quantity = Quantity.parse(text)
    assert (str(quantity), quantity.milli()) == (printed, milli)
    assert quantity.milli() == milli
    assert repr(quantity) == f"Quantity({printed!r})"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("", MALFORMED, id="empty"),
        pytest.param("1 Gi", MALFORMED, id="space"),
        pytest.param("5\n", MALFORMED, id="newline at the end"),
        pytest.param("\N{ARABIC-INDIC DIGIT ONE}", MALFORMED, id="non-ASCII digits"),
        pytest.param("--1", BAD_SUFFIX, id="two signs"),
        pytest.param("1.2.3", MALFORMED, id="two points"),
        pytest.param("1Kii", BAD_SUFFIX, id="unknown suffix"),
        pytest.param("1e", BAD_SUFFIX, id="exponent without digits"),
        pytest.param("1e+", BAD_SUFFIX, id="exponent with only a sign"),
        pytest.param("1e9223372036854775808", BAD_SUFFIX, id="exponent beyond 64 bits"),
        pytest.param("1e99999999999999999999", BAD_SUFFIX, id="exponent far beyond 64 bits"),
        pytest.param("Ei", BAD_NUMBER, id="large suffix alone"),
        pytest.param("e-20", BAD_NUMBER, id="small exponent alone"),
        pytest.param("9" * 4001, BAD_NUMBER, id="more than MAX_DIGITS digits"),
        pytest.param("9999999999999999999e99999", BAD_NUMBER, id="exponent beyond MAX_DIGITS"),
    ],
)
def test_invalid_quantity_is_rejected_with_the_message_of_kubernetes(text, error):
    with pytest.raises(QuantityError) as caught:
        Quantity.parse(text)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("text", "printed", "milli"),
    [
        pytest.param("1e4294967299", "1e4294967299", 10**6, id="exponent wraps to three"),
        pytest.param("10e2147483647", "10e2147483647", 10, id="maximum exponent"),
        pytest.param("1e-2000000000", "1e-9", 1, id="very small exponent"),
    ],
)
def test_exponent_wraps_at_32_bits(text, printed, milli):
    quantity = Quantity.parse(text)
    assert (str(quantity), quantity.milli()) == (printed, milli)


@pytest.mark.parametrize(
    ("text", "value", "integer"),
    [
        pytest.param("7", 7, 7, id="integer"),
        pytest.param("7k", 7000, 7000, id="thousands"),
        pytest.param("1.5", 2, None, id="fraction rounds up"),
        pytest.param("-1.5", -2, None, id="negative fraction rounds down"),
        pytest.param("100E", 0, None, id="overflow with repeated multiplication"),
        pytest.param("10000000000G", -8446744073709551616, None, id="overflow with a single multiplication"),
        pytest.param("10000000000k", 10**13, 10**13, id="large but fits"),
        pytest.param("1e40", 0, None, id="far too large"),
        pytest.param("1e1", 10, 10, id="tens"),
        pytest.param("-1e19", 0, None, id="too small"),
        pytest.param("99999999999999999999", 7766279631452241919, None, id="too long for a narrow amount"),
        pytest.param("99999999999999999999.5", 7766279631452241920, None, id="too long and rounded up"),
    ],
)
def test_value_in_whole_units(text, value, integer):
    quantity = Quantity.parse(text)
    assert (quantity.value(), quantity.as_int64()) == (value, integer)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("0.1", 0.1, id="tenth"),
        pytest.param("1e3", 1000.0, id="thousand"),
        pytest.param("1e-3", 0.001, id="thousandth"),
        pytest.param("3e40", 3 * (1e32 * 1e8), id="beyond the first power table"),
        pytest.param("5", 5.0, id="exponent zero"),
        pytest.param("1e400", math.inf, id="beyond a float"),
        pytest.param("1234567890123456789e400", math.inf, id="too many digits for a float"),
        pytest.param("-1234567890123456789e400", -math.inf, id="too many digits, negative"),
        pytest.param("0e-400", 0.0, id="zero with a small exponent"),
    ],
)
def test_float_is_rounded_like_upstream(text, number):
    assert Quantity.parse(text).to_float() == number


def test_zero_times_infinity_is_nan():
    assert math.isnan(Quantity.parse("0e400").to_float())


@pytest.mark.parametrize(
    ("number", "milli_decimal", "milli_binary", "decimal", "binary"),
    [
        pytest.param(0, "0", "0", "0", "0", id="zero"),
        pytest.param(1500, "1500m", "1500m", "1500", "1500", id="fraction"),
        pytest.param(2**27 * 1000, "134217728", "128Mi", "134217728k", "125Gi", id="memory"),
        pytest.param(-(2**20), "-1048576m", "-1048576m", "-1048576", "-1Mi", id="negative"),
        pytest.param(
            LEAST, "-9223372036854775808m", "-9223372036854775808m", str(LEAST), str(LEAST), id="minimum int64"
        ),
    ],
)
def test_integer_is_formatted_in_the_given_format(number, milli_decimal, milli_binary, decimal, binary):
    assert str(Quantity.from_milli(number)) == milli_decimal
    assert str(Quantity.from_milli(number, BINARY_SI)) == milli_binary
    assert str(Quantity(number)) == decimal
    assert str(Quantity(number, 0, BINARY_SI)) == binary
    assert Quantity.from_milli(number).milli() == number


@pytest.mark.parametrize(
    ("one", "other", "total", "difference"),
    [
        pytest.param("1", "1", "2", "0", id="equal exponents"),
        pytest.param("1", "500m", "1500m", "500m", id="smaller exponent is used"),
        pytest.param("500m", "1", "1500m", "-500m", id="smaller exponent is used, swapped"),
        pytest.param("1Gi", "1Gi", "2Gi", "0", id="binary format is kept"),
        pytest.param("500M", "1Gi", "1573741824", "-573741824", id="format of the first operand"),
        pytest.param("0", "1Gi", "1Gi", "-1Gi", id="zero takes the format of the other operand"),
        pytest.param("1Gi", "0", "1Gi", "1Gi", id="adding zero"),
        pytest.param("1e30", "1", "1000000000000000000000000000001", "999999999999999999999999999999", id="wide"),
        pytest.param("9E", "9E", "18E", "0", id="sum that overflows only in units"),
        pytest.param("1.0000000001", "1", "2000000001n", "1n", id="one wide operand"),
        pytest.param("0e-20", "-1.5", "-1500m", "1500m", id="zero with a small exponent and a fraction"),
    ],
)
def test_sum_and_difference(one, other, total, difference):
    a, b = Quantity.parse(one), Quantity.parse(other)
    assert str(a + b) == total
    assert str(a - b) == difference


def test_sum_beyond_64_bits_is_exact():
    assert str(Quantity(2**62) + Quantity(2**62)) == "9223372036854775808"
    assert str(Quantity(LEAST, 0, BINARY_SI) - Quantity(1, 0, BINARY_SI)) == "-9223372036854775809"
    assert str(Quantity.parse("-9223372036854775809") + Quantity.parse("1")) == str(LEAST)


def test_only_a_wide_amount_formats_the_minimum_int64_with_a_binary_suffix():
    eight = Quantity(2**62, 0, BINARY_SI) + Quantity(2**62, 0, BINARY_SI)
    assert str(-eight) == "-8Ei"
    assert str(Quantity(LEAST, 0, BINARY_SI)) == str(LEAST)


def test_negated_minimum_int64_overflows():
    least = Quantity(LEAST)
    assert str(-least) == str(LEAST)
    assert str(Quantity(1) - least) == str(LEAST + 1)
    assert (Quantity(0) - Quantity(LEAST)).value() == LEAST
    assert least.milli() == 0


def test_wide_amount_is_negated_exactly():
    assert str(-Quantity.parse("1.0000000001")) == "-1000000001n"


@pytest.mark.parametrize(
    ("one", "other", "value", "milli"),
    [
        pytest.param("1e40", "1e20", LEAST, LEAST, id="beyond the power table"),
        pytest.param("1e22", "1e3", 1864712049423025128, 1590897978360414784, id="wrapped"),
        pytest.param("0e-30", "-1.5", -1, -1500, id="exponent below the power table"),
    ],
)
def test_wide_sum_is_converted_like_upstream(one, other, value, milli):
    total = Quantity.parse(one) + Quantity.parse(other)
    assert total.wide
    assert (total.value(), total.milli()) == (value, milli)


def test_sum_with_too_many_digits_is_rejected():
    with pytest.raises(AmountTooLongError):
        Quantity.parse("1e9999") + Quantity.parse("1")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param("1", "1000m", 0, id="equal in different formats"),
        pytest.param("1Ki", "1k", 1, id="1Ki and 1k"),
        pytest.param("-1", "1", -1, id="negative and positive"),
        pytest.param("1e2000000000", "9E", 1, id="very large"),
        pytest.param("-1e2000000000", "9E", -1, id="very large negative"),
        pytest.param("0e2000000000", "0", 0, id="zero with different exponents"),
    ],
)
def test_comparison_is_by_value(one, other, expected):
    a, b = Quantity.parse(one), Quantity.parse(other)
    assert (a.cmp(b), b.cmp(a)) == (expected, -expected)
    assert ((a == b), (a < b), (a >= b)) == (expected == 0, expected < 0, expected >= 0)
    assert (hash(a) == hash(b)) == (expected == 0)


def test_quantity_is_not_comparable_with_other_types():
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
    assert (quantity.sign(), quantity.sign() == 0, quantity.format) == (sign, sign == 0, form)


def test_canonical_form_is_independent_of_the_text():
    assert Quantity.parse("007").canonical() == "7"

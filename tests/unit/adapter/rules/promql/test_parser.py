import pytest

from adapter.rules.promql.errors import PromqlError
from adapter.rules.promql.expression import LabelMatcher, VectorSelector, vector_selectors
from adapter.rules.promql.parser import MAX_BYTES, MAX_OPERATORS, parse
from adapter.rules.promql.printer import to_text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x", id="metric name"),
        pytest.param('x{a="b",c!="d",e=~"f",g!~"h"}', id="matchers"),
        pytest.param('{__name__="offset"}', id="only matchers"),
        pytest.param('{__name__="a.b","c d"="e"}', id="UTF-8 names"),
        pytest.param('sum by (a, "b c") (x)', id="aggregation"),
        pytest.param("sum without () (x)", id="aggregation without labels"),
        pytest.param("topk(3, x)", id="aggregation parameter"),
        pytest.param('count_values("a", x)', id="string parameter"),
        pytest.param("rate(x[5m])", id="range"),
        pytest.param("rate(x[5m] @ end() offset -90m)", id="modifiers of a range"),
        pytest.param("x @ 1.500", id="timestamp"),
        pytest.param("max_over_time(sum(x)[5m:1m] offset 1d)", id="subquery"),
        pytest.param("max_over_time((x offset 5m)[10m:])", id="subquery with the default step"),
        pytest.param("a * on (x) group_left (y) b", id="vector matching"),
        pytest.param("a / ignoring (x) group_right () b", id="group_right without labels"),
        pytest.param("a + on () fill_left (0) fill_right (-1) b", id="fill modifiers"),
        pytest.param("x > bool 3", id="bool"),
        pytest.param("(a and b) or (c unless d)", id="set operators"),
        pytest.param("-(x ^ 2)", id="unary minus binds weaker than a power"),
        pytest.param("(-1) ^ 2", id="power of a negative number"),
        pytest.param("2 ^ (3 ^ 2)", id="power is right-associative"),
        pytest.param("(1 - 2) - 3", id="subtraction is left-associative"),
        pytest.param("(-Inf) + Inf", id="numeric constants"),
        pytest.param("1e+300 * 1.5e-05", id="exponents"),
        pytest.param("vector(1) + time()", id="no series"),
        pytest.param('label_replace(x, "y", "{$1}", "z", "#")', id="strings"),
        pytest.param("holt_winters(x[5m], 0.5, 0.5)", id="function of Prometheus 2"),
    ],
)
def test_printed_expression_is_the_parsed_one(text: str) -> None:
    assert to_text(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        pytest.param("a or b and c", "a or (b and c)", id="precedence"),
        pytest.param("x{a='b',}", 'x{a="b"}', id="trailing comma"),
        pytest.param("SUM(x) BY (a)", "sum by (a) (x)", id="upper case and clause after the aggregation"),
        pytest.param("x # y{", "x", id="comment"),
        pytest.param("x # y\r+ z", "x + z", id="comment that ends at a carriage return"),
        pytest.param("((x))", "x", id="parentheses"),
        pytest.param("x[1h30m:1y]", "x[90m:365d]", id="durations"),
        pytest.param("x offset 1.5", "x offset 1500ms", id="number as a duration"),
        pytest.param("0x1F + 017 + 5m", "(31 + 15) + 300", id="numbers"),
        pytest.param("1e400", "Inf", id="overflow"),
        pytest.param("by + by", '{__name__="by"} + {__name__="by"}', id="keywords as metric names"),
        pytest.param("sum(sum{a='b'})", 'sum({__name__="sum",a="b"})', id="aggregation as a metric name"),
        pytest.param(
            "a * on () group_left offset", 'a * on () group_left () {__name__="offset"}', id="keyword after a clause"
        ),
        pytest.param("x > bool Unless", 'x > bool {__name__="Unless"}', id="keyword after bool"),
    ],
)
def test_expression_is_printed_unambiguously(text: str, printed: str) -> None:
    assert to_text(parse(text)) == printed
    assert to_text(parse(printed)) == printed


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        pytest.param(r'"a\"b\\c\nd"', 'a"b\\c\nd', id="double quotes"),
        pytest.param(r"'a\'b\"' ".strip().replace(r"\"", '"'), "a'b\"", id="single quotes"),
        pytest.param(r"`a\d`", r"a\d", id="raw string"),
        pytest.param(r'"\x41\102\u0043\U00000044"', "ABCD", id="character codes"),
        pytest.param(r'"\a\b\f\r\t\v"', "\a\b\f\r\t\v", id="control characters"),
        pytest.param('"#}"', "#}", id="comment and brace"),
        pytest.param('"(\\\\w{300}"', r"(\w{300}", id="invalid regular expression"),
    ],
)
@pytest.mark.parametrize("operator", ["=", "=~"])
def test_strings_have_the_value_that_prometheus_gives_them(literal: str, value: str, operator: str) -> None:
    expected = VectorSelector("x", (LabelMatcher("a", operator, value),))
    assert parse(f"x{{a{operator}{literal}}}") == expected
    assert parse(to_text(expected)) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("x{", "unexpected end of input", id="unclosed brace"),
        pytest.param("x)", "unexpected right parenthesis", id="unopened parenthesis"),
        pytest.param('x{a="', "a string is not terminated", id="unterminated string"),
        pytest.param('x{a="b\n"}', "a string is not terminated", id="newline in a string"),
        pytest.param(r'x{a="\q"}', "unknown escape sequence", id="unknown escape"),
        pytest.param(r'x{a="\xff"}', "is not a character", id="byte that is not a character"),
        pytest.param(r'x{a="\ud800"}', "is not a character", id="surrogate"),
        pytest.param("x; drop", "unexpected character", id="invalid character"),
        pytest.param("x y", "syntax error; only standard PromQL is supported", id="two operands"),
        pytest.param("x default 0", "no experimental syntax, such as 'default'", id="MetricsQL"),
        pytest.param('x{a="1" or b="2"}', "'or' between matchers is not supported", id="or between matchers"),
        pytest.param('x{__name__="y"}', "a metric name in front of its braces and inside them", id="two metric names"),
        pytest.param("sum(1)", "expected type vector", id="wrong type"),
        pytest.param("x @ -5", "must not be negative", id="negative timestamp"),
        pytest.param("x offset 0.0001", "a whole number of milliseconds", id="too short"),
        pytest.param("x offset 1e300", "a duration or timestamp is out of range", id="too long"),
        pytest.param("x @ 1e15", "invalid PromQL", id="timestamp after the year 9999"),
        pytest.param("x" * (MAX_BYTES + 1), "no longer than 65536 bytes", id="long query"),
        pytest.param("x" + "+x" * (MAX_OPERATORS + 1), "no more than 300 operators", id="many operators"),
        pytest.param("(" * 100_000, "no longer than 65536 bytes", id="deep nesting"),
        pytest.param("\ud800", "invalid PromQL|surrogates", id="lone surrogate"),
    ],
)
def test_expression_that_is_not_supported_is_rejected(text: str, problem: str) -> None:
    with pytest.raises(PromqlError, match=problem):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("(" * 150 + "x" + ")" * 150, id="parentheses"),
        pytest.param("-" * 150 + "x", id="unary minus"),
        pytest.param("abs(" * 150 + "x" + ")" * 150, id="calls"),
        pytest.param("x offset 5m" + " or x offset 5m" * 150, id="operators"),
        pytest.param("x" + " ^ -1" * 75, id="negative numbers"),
        pytest.param("-(" * 75 + "x" + ")" * 75, id="minus and parentheses"),
    ],
)
def test_printed_expression_is_within_the_limit_if_the_parsed_one_is_within_half_of_it(text: str) -> None:
    expression = parse(text, MAX_OPERATORS // 2)
    assert parse(to_text(expression)) == expression


def test_expression_at_the_limit_is_parsed_and_printed() -> None:
    assert to_text(parse("(" * MAX_OPERATORS + "x" + ")" * MAX_OPERATORS)) == "x"
    assert to_text(parse("x" + "+x" * MAX_OPERATORS)).count("x") == MAX_OPERATORS + 1


def test_selectors_are_found_in_every_position() -> None:
    text = 'sum by (c) (rate(a[5m])) + on (d) topk(scalar(b), max_over_time(c[5m:1m])) > bool -{d="e"} ^ scalar(f)'
    assert [each.name for each in vector_selectors(parse(text))] == ["a", "b", "c", "", "f"]

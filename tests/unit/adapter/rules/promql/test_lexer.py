import pytest

from adapter.rules.promql.lexer import PromqlError, add_matchers
from adapter.rules.promql.sample_age import with_timestamps


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("x", "x{ns}", id="metric name"),
        pytest.param("x{}", "x{ns}", id="empty braces"),
        pytest.param('x{a="b"}', 'x{ns,a="b"}', id="matchers"),
        pytest.param('x{a="b",}', 'x{ns,a="b",}', id="trailing comma"),
        pytest.param('{__name__="x"}', '{ns,__name__="x"}', id="name as a matcher"),
        pytest.param("sum by (a, b) (x)", "sum by (a, b) (x{ns})", id="labels of a by clause"),
        pytest.param("sum(x) without (a)", "sum(x{ns}) without (a)", id="without clause after the aggregation"),
        pytest.param("rate(x[5m])", "rate(x{ns}[5m])", id="range"),
        pytest.param("max_over_time(sum(x)[5m:1m])", "max_over_time(sum(x{ns})[5m:1m])", id="subquery"),
        pytest.param("x offset 5m - x @ start()", "x{ns} offset 5m - x{ns} @ start()", id="offset and @ modifiers"),
        pytest.param("a * on (x) group_left (y) b", "a{ns} * on (x) group_left (y) b{ns}", id="vector matching"),
        pytest.param(
            "a / ignoring(x) group_right b", "a{ns} / ignoring(x) group_right b{ns}", id="group_right without labels"
        ),
        pytest.param("a and b or c unless d", "a{ns} and b{ns} or c{ns} unless d{ns}", id="set operators"),
        pytest.param("x > bool 3", "x{ns} > bool 3", id="bool"),
        pytest.param("vector(1) + time()", "vector(1) + time()", id="no series"),
        pytest.param("-Inf + NaN + 0x1f + 1e3", "-Inf + NaN + 0x1f + 1e3", id="numeric constants"),
        pytest.param(
            'label_replace(x, "y", "{$1}", "z", "#")', 'label_replace(x{ns}, "y", "{$1}", "z", "#")', id="strings"
        ),
        pytest.param("x # y{", "x{ns} # y{", id="comment"),
        pytest.param("`x`\n", "`x`\n", id="raw string"),
        pytest.param("job:x:rate5m", "job:x:rate5m{ns}", id="recording rule name"),
        pytest.param("sum", "sum{ns}", id="aggregation name as a metric name"),
        pytest.param("topk(3, x)", "topk(3, x{ns})", id="aggregation parameter"),
        pytest.param('x or {a="b"}', 'x{ns} or {ns,a="b"}', id="operator before braces"),
        pytest.param('x > bool {a="b"}', 'x{ns} > bool {ns,a="b"}', id="modifier before braces"),
        pytest.param('x * on(a) group_left {b="c"}', 'x{ns} * on(a) group_left {ns,b="c"}', id="clause before braces"),
        pytest.param('x{a="}"}', 'x{ns,a="}"}', id="brace in a string"),
        pytest.param(r'x{a="\"}"} + y', r'x{ns,a="\"}"} + y{ns}', id="escaped quote"),
    ],
)
def test_matchers_are_added_to_every_vector_selector(expression: str, expected: str) -> None:
    assert add_matchers(expression, ["ns"]) == expected


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("or", "'or' cannot be used as a metric name here", id="operator as a name"),
        pytest.param("x or or", "'or' cannot be used as a metric name here", id="operator as an operand"),
        pytest.param("offset{}", "'offset' cannot be used as a metric name here", id="operator with braces"),
        pytest.param("x and (unless)", "'unless' cannot be used as a metric name here", id="operator in parentheses"),
        pytest.param("bool", "'bool' cannot be used as a metric name here", id="bool without a comparison"),
        pytest.param("by", "'by' requires a list of labels", id="clause without labels"),
        pytest.param("x{", "'}' is missing", id="unclosed brace"),
        pytest.param("x)", "')' has no opening bracket", id="unopened parenthesis"),
        pytest.param('x{a="', "unexpected text", id="unterminated string"),
        pytest.param("x; drop", "unexpected text", id="invalid character"),
    ],
)
def test_invalid_or_ambiguous_expression_is_rejected(expression: str, problem: str) -> None:
    with pytest.raises(PromqlError, match=problem.replace("(", r"\(").replace(")", r"\)")):
        add_matchers(expression, ["ns"])


def test_expression_is_unchanged_without_matchers() -> None:
    assert add_matchers("sum(x)", []) == "sum(x)"


@pytest.mark.parametrize(
    ("expression", "timestamps"),
    [
        pytest.param("x", "timestamp(x)", id="metric name"),
        pytest.param('(x{a="b"})', 'timestamp(x{a="b"})', id="in parentheses"),
        pytest.param("rate(x[5m])", "timestamp(x)", id="rate"),
        pytest.param("max_over_time(x[5m])", "timestamp(x)", id="maximum over time"),
        pytest.param("sum by (A, b) (x)", "min by ( A , b ) (timestamp(x))", id="aggregation by labels"),
        pytest.param("max(x) without (a)", "min without ( a ) (timestamp(x))", id="clause after the aggregation"),
        pytest.param("sum(max by (a) (x))", "min (min by ( a ) (timestamp(x)))", id="nested aggregations"),
    ],
)
def test_timestamps_of_simple_expressions_are_queried_per_series(expression: str, timestamps: str) -> None:
    extended = with_timestamps(expression)
    assert extended is not None
    assert extended.replace(" ", "").endswith(
        f'orlabel_replace({timestamps},"__steadyscale__","time","","")'.replace(" ", "")
    )


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("a / b", id="two inputs"),
        pytest.param("topk(3, a)", id="aggregation with a parameter"),
        pytest.param("a offset 5m", id="offset"),
        pytest.param('{job="x"}', id="no metric name"),
        pytest.param("quantile_over_time(0.5, a[5m])", id="function with two arguments"),
        pytest.param("max_over_time(a[5m:1m])", id="subquery"),
        pytest.param("clamp_min(sum by (x) (a), 0)", id="function of an aggregation"),
    ],
)
def test_timestamps_of_other_expressions_are_those_of_the_stalest_input(expression: str) -> None:
    assert "max(timestamp(" in (with_timestamps(expression) or "")


@pytest.mark.parametrize("expression", ["42", "vector(1)", '"text"', "time()", "x{", "or"])
def test_expression_without_series_or_with_errors_gets_no_timestamps(expression: str) -> None:
    assert with_timestamps(expression) is None

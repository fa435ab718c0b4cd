"""Matchers are added wherever an expression reads series, and nowhere else; what is unclear is refused."""

import pytest

from adapter.rules.promql.lexer import PromqlError, with_matchers
from adapter.rules.promql.sample_age import timed


@pytest.mark.parametrize(
    ("expression", "confined"),
    [
        pytest.param("x", "x{ns}", id="a name alone"),
        pytest.param("x{}", "x{ns}", id="empty braces"),
        pytest.param('x{a="b"}', 'x{ns,a="b"}', id="braces with a matcher"),
        pytest.param('x{a="b",}', 'x{ns,a="b",}', id="a trailing comma stays legal"),
        pytest.param('{__name__="x"}', '{ns,__name__="x"}', id="no name but in the braces"),
        pytest.param("sum by (a, b) (x)", "sum by (a, b) (x{ns})", id="labels of a clause are no series"),
        pytest.param("sum(x) without (a)", "sum(x{ns}) without (a)", id="a clause at the end"),
        pytest.param("rate(x[5m])", "rate(x{ns}[5m])", id="a range"),
        pytest.param("max_over_time(sum(x)[5m:1m])", "max_over_time(sum(x{ns})[5m:1m])", id="a subquery"),
        pytest.param("x offset 5m - x @ start()", "x{ns} offset 5m - x{ns} @ start()", id="modifiers"),
        pytest.param("a * on (x) group_left (y) b", "a{ns} * on (x) group_left (y) b{ns}", id="vector matching"),
        pytest.param("a / ignoring(x) group_right b", "a{ns} / ignoring(x) group_right b{ns}", id="group without list"),
        pytest.param("a and b or c unless d", "a{ns} and b{ns} or c{ns} unless d{ns}", id="set operators"),
        pytest.param("x > bool 3", "x{ns} > bool 3", id="bool"),
        pytest.param("vector(1) + time()", "vector(1) + time()", id="nothing is read"),
        pytest.param("-Inf + NaN + 0x1f + 1e3", "-Inf + NaN + 0x1f + 1e3", id="numbers that look like names"),
        pytest.param(
            'label_replace(x, "y", "{$1}", "z", "#")', 'label_replace(x{ns}, "y", "{$1}", "z", "#")', id="text"
        ),
        pytest.param("x # y{", "x{ns} # y{", id="a comment"),
        pytest.param("`x`\n", "`x`\n", id="a raw string"),
        pytest.param("job:x:rate5m", "job:x:rate5m{ns}", id="colons in a name"),
        pytest.param("sum", "sum{ns}", id="an aggregation's name can be a metric's"),
        pytest.param("topk(3, x)", "topk(3, x{ns})", id="a parameter"),
        pytest.param('x or {a="b"}', 'x{ns} or {ns,a="b"}', id="an operator before braces"),
        pytest.param('x > bool {a="b"}', 'x{ns} > bool {ns,a="b"}', id="a modifier before braces"),
        pytest.param(
            'x * on(a) group_left {b="c"}', 'x{ns} * on(a) group_left {ns,b="c"}', id="a clause before braces"
        ),
        pytest.param('x{a="}"}', 'x{ns,a="}"}', id="a brace in a string"),
        pytest.param(r'x{a="\"}"} + y', r'x{ns,a="\"}"} + y{ns}', id="an escaped quote"),
    ],
)
def test_matchers_are_added_wherever_series_are_read(expression: str, confined: str) -> None:
    assert with_matchers(expression, ["ns"]) == confined


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("or", "'or' as the name of a metric", id="an operator as a name"),
        pytest.param("x or or", "'or' as the name of a metric", id="an operator as an operand"),
        pytest.param("offset{}", "'offset' as the name of a metric", id="an operator with braces"),
        pytest.param("x and (unless)", "'unless' as the name of a metric", id="an operator in parentheses"),
        pytest.param("bool", "'bool' as the name of a metric", id="bool without a comparison"),
        pytest.param("by", "'by' without a list of labels", id="a clause without labels"),
        pytest.param("x{", "'}' is missing", id="a brace that is not closed"),
        pytest.param("x)", "')' closes nothing", id="a parenthesis too many"),
        pytest.param('x{a="', "unexpected text", id="a string that does not end"),
        pytest.param("x; drop", "unexpected text", id="a character that PromQL does not have"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(expression: str, problem: str) -> None:
    with pytest.raises(PromqlError, match=problem.replace("(", r"\(").replace(")", r"\)")):
        with_matchers(expression, ["ns"])


def test_without_matchers_nothing_changes() -> None:
    assert with_matchers("sum(x)", []) == "sum(x)"


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        pytest.param("x", "timestamp(x)", id="a name"),
        pytest.param('(x{a="b"})', 'timestamp(x{a="b"})', id="in parentheses"),
        pytest.param("rate(x[5m])", "timestamp(x)", id="a rate"),
        pytest.param("max_over_time(x[5m])", "timestamp(x)", id="a maximum over time"),
        pytest.param("sum by (A, b) (x)", "min by ( A , b ) (timestamp(x))", id="an aggregation by labels"),
        pytest.param("max(x) without (a)", "min without ( a ) (timestamp(x))", id="the clause at the end"),
        pytest.param("sum(max by (a) (x))", "min (min by ( a ) (timestamp(x)))", id="aggregations of aggregations"),
    ],
)
def test_plain_forms_are_asked_for_their_times_series_by_series(expression: str, times: str) -> None:
    asked = timed(expression)
    assert asked is not None
    assert asked.replace(" ", "").endswith(f'orlabel_replace({times},"__steadyscale__","time","","")'.replace(" ", ""))


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("a / b", id="two inputs"),
        pytest.param("topk(3, a)", id="a parameter"),
        pytest.param("a offset 5m", id="an offset"),
        pytest.param('{job="x"}', id="no name"),
        pytest.param("quantile_over_time(0.5, a[5m])", id="a function of two"),
        pytest.param("max_over_time(a[5m:1m])", id="a subquery"),
        pytest.param("clamp_min(sum by (x) (a), 0)", id="a function round an aggregation"),
    ],
)
def test_any_other_form_is_asked_when_its_quietest_input_was_heard_of(expression: str) -> None:
    assert "max(timestamp(" in (timed(expression) or "")


@pytest.mark.parametrize("expression", ["42", "vector(1)", '"text"', "time()", "x{", "or"])
def test_what_reads_no_series_or_is_not_clear_is_asked_as_it_is(expression: str) -> None:
    assert timed(expression) is None

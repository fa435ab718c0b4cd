import pytest

from adapter.rules.promql.sample_age import with_timestamps


@pytest.mark.parametrize(
    ("expression", "timestamps"),
    [
        pytest.param("x", "timestamp(x)", id="metric name"),
        pytest.param('(x{a="b"})', 'timestamp(x{a="b"})', id="in parentheses"),
        pytest.param("rate(x[5m])", "timestamp(x)", id="rate"),
        pytest.param("max_over_time(x[5m])", "timestamp(x)", id="maximum over time"),
        pytest.param("sum by (A, b) (x)", "min by (A, b) (timestamp(x))", id="aggregation by labels"),
        pytest.param("max(x) without (a)", "min without (a) (timestamp(x))", id="clause after the aggregation"),
        pytest.param("sum(max by (a) (x))", "min (min by (a) (timestamp(x)))", id="nested aggregations"),
        pytest.param("sum(rate(offset[5m]))", 'min (timestamp({__name__="offset"}))', id="keyword as a metric name"),
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
        pytest.param("rate(a[5m] offset 1h)", id="offset of a range"),
        pytest.param("clamp_min(sum by (x) (a), 0)", id="function of an aggregation"),
    ],
)
def test_timestamps_of_other_expressions_are_those_of_the_stalest_input(expression: str) -> None:
    assert "max(timestamp(" in (with_timestamps(expression) or "")


@pytest.mark.parametrize("expression", ["42", "vector(1)", '"text"', "time()", "x{", "rate(x) default 0"])
def test_expression_without_series_or_with_errors_gets_no_timestamps(expression: str) -> None:
    assert with_timestamps(expression) is None


def test_values_are_queried_with_the_text_of_the_rule() -> None:
    assert "\nx  +  y # comment\n" in (with_timestamps("x  +  y # comment") or "")

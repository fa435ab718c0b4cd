"""What of CloudWatch needs no server: windows, the sharing out among calls, names in expressions."""

from datetime import UTC, datetime, timedelta

import pytest

from adapter.backends.cloudwatch import expression
from adapter.backends.cloudwatch.parameters import CloudWatchParameters, Metric
from adapter.backends.cloudwatch.parse import series
from adapter.backends.cloudwatch.query import Asked, Question, asked_now, blamed, calls, queries, together, window
from adapter.errors import BackendRejected, BadQuery

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def asked(name: str = "m", **more: object) -> CloudWatchParameters:
    return CloudWatchParameters(namespace="N", metric=name, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("now", "more", "start", "end"),
    [
        (NOON, {}, "11:45", "12:00"),
        (NOON + timedelta(seconds=59), {}, "11:45", "12:00"),
        (NOON + timedelta(minutes=4), {"period": timedelta(minutes=5)}, "11:45", "12:00"),
        (NOON, {"period": timedelta(hours=1)}, "09:00", "12:00"),
        (NOON, {"delay": timedelta(seconds=1)}, "11:44", "11:59"),
        (NOON, {"period": timedelta(minutes=5), "lookback": timedelta(minutes=7)}, "11:50", "12:00"),
    ],
)
def test_a_window_is_of_whole_periods_that_are_over(
    now: datetime, more: dict[str, timedelta], start: str, end: str
) -> None:
    found = window(asked(**more), now)
    assert [f"{at:%H:%M}" for at in found] == [start, end]


def alone(question: CloudWatchParameters) -> Asked:
    (made,) = asked_now([Question("", question)], NOON)
    return made


def test_no_call_has_more_queries_than_cloudwatch_takes() -> None:
    double = CloudWatchParameters(expression="a + b", metrics={"a": Metric("N", "a"), "b": Metric("N", "b")})
    questions = [Question(str(number), double if number % 2 else asked()) for number in range(500)]
    found = [sum(len(list(queries(each))) for each in call) for call in calls(asked_now(questions, NOON))]
    assert found == [500, 500]


def test_who_is_named_in_a_refusal_is_to_blame() -> None:
    assert blamed(BadQuery("", detail="Error in expression 'q11': bad; see q3_m1, and seq7 or q is nothing")) == {3, 11}
    assert blamed(BadQuery("", detail="no idea")) == frozenset()


def test_only_what_has_the_same_window_and_goes_well_with_others_goes_together() -> None:
    plain = together(Question("a", asked()))
    assert plain == together(Question("b", asked("other", statistic="Sum")))
    assert plain != together(Question("c", asked(delay=timedelta(minutes=1))))
    searches = [CloudWatchParameters(expression="SEARCH('x')"), CloudWatchParameters(expression="SELECT x")]
    assert len({plain, *(together(Question(each.expression, each)) for each in searches)}) == 3


def test_names_in_an_expression_are_renamed_and_texts_in_it_are_not() -> None:
    metrics = {"m1": Metric("N", "a"), "m": Metric("N", "b")}
    question = CloudWatchParameters(expression="m1/m + SUM(SEARCH('{m,m1} m1', \"m1\", 60)) + m10", metrics=metrics)
    each = alone(question)
    *inputs, whole = queries(each)
    assert [one["Id"] for one in inputs] == ["q0_m1", "q0_m"]
    assert [one["ReturnData"] for one in inputs] == [False, False]
    assert whole == {"Id": "q0", "Expression": "q0_m1/q0_m + SUM(SEARCH('{m,m1} m1', \"m1\", 60)) + m10"}


def test_several_labels_are_told_apart_by_what_no_dimension_holds() -> None:
    question = CloudWatchParameters(expression="SEARCH('{N,a,b}')", labels=("a", "b"))
    each = alone(question)
    assert next(queries(each))["Label"] == "${PROP('Dim.a')}·${PROP('Dim.b')}"


@pytest.mark.parametrize(
    ("text", "is_select", "finds", "stands_alone"),
    [
        ("m1 / m2", False, False, False),
        (" select max(x)", True, True, True),
        ("SUM(SEARCH('x'))", False, True, True),
        ("SUM(METRICS())", False, False, True),
        ("m1 + 'METRICS SEARCH SELECT'", False, False, False),
    ],
)
def test_what_an_expression_is(text: str, *, is_select: bool, finds: bool, stands_alone: bool) -> None:
    assert expression.is_select(text) is is_select
    assert expression.finds_metrics(text) is finds
    assert expression.needs_a_call_to_itself(text) is stands_alone


def test_series_that_nothing_tells_apart_cannot_be_put_together_from_pages() -> None:
    page = {"MetricDataResults": [{"Id": "q0", "Label": "x"}] * 2}
    assert len(series([page])["q0"]) == 2
    with pytest.raises(BackendRejected):
        series([page, page])

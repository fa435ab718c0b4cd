"""What of CloudWatch needs no server: windows, the sharing out among calls, names in expressions, pace."""

from datetime import UTC, datetime, timedelta

import pytest

from adapter.backends.cloudwatch import expression, splitting
from adapter.backends.cloudwatch.answer import series
from adapter.backends.cloudwatch.pace import Pace
from adapter.backends.cloudwatch.question import calls, queries, window
from adapter.backends.cloudwatch.settings import CloudWatchParameters, Metric
from adapter.errors import BackendRefused

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


def test_questions_that_were_refused_are_asked_alone_until_they_are_answered() -> None:
    suspects, questions = splitting.Suspects(), [asked("a"), asked("b"), asked("c")]
    suspects.add(questions[1])
    assert [[each.question.metric for each in call] for call in calls(questions, suspects, NOON)] == [["b"], ["a", "c"]]
    suspects.discard(questions[1])
    assert [len(call) for call in calls(questions, suspects, NOON)] == [3]


def test_suspects_of_long_ago_are_forgotten() -> None:
    suspects = splitting.Suspects()
    for number in range(600):
        suspects.add(asked(f"m{number}"))
    assert asked("m0") not in suspects
    assert asked("m599") in suspects


def test_who_is_named_in_a_refusal_is_parted_from_the_others() -> None:
    (call,) = calls([asked(f"m{number}") for number in range(12)], (), NOON)
    guilty, others = splitting.parted(call, "Error in expression 'q11': bad; see q3_m1")
    assert [each.id for each in guilty] == ["q3", "q11"]
    assert len(others) == 10
    assert [len(part) for part in splitting.parted(call, "no idea")] == [6, 6]
    assert [len(part) for part in splitting.parted(call[3:4] + call[11:], "q3 and q11")] == [1, 1]


def test_names_in_an_expression_are_renamed_and_texts_in_it_are_not() -> None:
    metrics = {"m1": Metric("N", "a"), "m": Metric("N", "b")}
    question = CloudWatchParameters(expression="m1/m + SUM(SEARCH('{m,m1} m1', \"m1\", 60)) + m10", metrics=metrics)
    ((each,),) = calls([question], (), NOON)
    *inputs, whole = queries(each)
    assert [one["Id"] for one in inputs] == ["q0_m1", "q0_m"]
    assert [one["ReturnData"] for one in inputs] == [False, False]
    assert whole == {"Id": "q0", "Expression": "q0_m1/q0_m + SUM(SEARCH('{m,m1} m1', \"m1\", 60)) + m10"}


def test_several_labels_are_told_apart_by_what_no_dimension_holds() -> None:
    question = CloudWatchParameters(expression="SEARCH('{N,a,b}')", labels=("a", "b"))
    ((each,),) = calls([question], (), NOON)
    assert next(queries(each))["Label"] == "${PROP('Dim.a')}·${PROP('Dim.b')}"


@pytest.mark.parametrize(
    ("text", "is_select", "finds", "stands_alone"),
    [
        ("m1 / m2", False, False, False),
        (" select max(x)", True, True, False),
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
    with pytest.raises(BackendRefused):
        series([page, page])


@pytest.mark.looptime
async def test_calls_come_no_faster_than_the_pace(looptime: int) -> None:
    pace = Pace(10)
    at = []
    for _ in range(4):
        await pace.turn()
        at.append(float(looptime))
    assert at == pytest.approx([0, 0.1, 0.2, 0.3])

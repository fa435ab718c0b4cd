"""CloudWatch requests without a server: time ranges, distribution over requests, names in expressions."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapter.backends.cloudwatch import expressions
from adapter.backends.cloudwatch.parse import series_by_id
from adapter.backends.cloudwatch.query import (
    RequestItem,
    batch_key,
    metric_data_queries,
    rejected_positions,
    request_items,
    split_requests,
    time_range,
)
from adapter.backends.cloudwatch.settings import CloudWatchMetric, CloudWatchParameters
from adapter.errors import BackendRejected, BadQuery

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def metric_parameters(name: str = "m", **more: Any) -> CloudWatchParameters:
    return CloudWatchParameters(namespace="N", metric=name, **more)


@pytest.mark.parametrize(
    ("now", "more", "start", "end"),
    [
        (NOON, {}, "11:45", "12:00"),
        (NOON + timedelta(seconds=59), {}, "11:45", "12:00"),
        (NOON + timedelta(minutes=4), {"period": timedelta(minutes=5)}, "11:45", "12:00"),
        (NOON, {"period": timedelta(hours=1)}, "09:00", "12:00"),
        (NOON, {"delay": timedelta(seconds=1)}, "11:44", "11:59"),
        (NOON, {"period": timedelta(minutes=5), "window": timedelta(minutes=7)}, "11:50", "12:00"),
    ],
)
def test_a_time_range_consists_of_complete_periods(now: datetime, more: dict[str, Any], start: str, end: str) -> None:
    result = time_range(metric_parameters(**more), now)
    assert [f"{time:%H:%M}" for time in result] == [start, end]


def single_item(parameters: CloudWatchParameters) -> RequestItem:
    (item,) = request_items([parameters], NOON)
    return item


def test_no_request_exceeds_the_limit_of_queries() -> None:
    double = CloudWatchParameters(
        expression="a + b", metrics={"a": CloudWatchMetric("N", "a"), "b": CloudWatchMetric("N", "b")}
    )
    queries = [double if number % 2 else metric_parameters() for number in range(500)]
    requests = split_requests(request_items(queries, NOON))
    assert [sum(len(list(metric_data_queries(item))) for item in request) for request in requests] == [500, 500]


def test_rejected_positions_are_read_from_the_error() -> None:
    assert rejected_positions(
        BadQuery("", detail="Error in expression 'q11': invalid; see q3_m1, but not seq7 or q")
    ) == {3, 11}
    assert rejected_positions(BadQuery("", detail="no names")) == frozenset()


def test_batch_key_depends_on_window_delay_and_own_request() -> None:
    plain = batch_key(metric_parameters())
    assert plain == batch_key(metric_parameters("other", statistic="Sum"))
    assert plain != batch_key(metric_parameters(delay=timedelta(minutes=1)))
    searches = [CloudWatchParameters(expression="SEARCH('x')"), CloudWatchParameters(expression="SELECT x")]
    assert len({plain, *(batch_key(each) for each in searches)}) == 3


def test_metric_names_in_an_expression_are_renamed_but_not_quoted_strings() -> None:
    metrics = {"m1": CloudWatchMetric("N", "a"), "m": CloudWatchMetric("N", "b")}
    parameters = CloudWatchParameters(expression="m1/m + SUM(SEARCH('{m,m1} m1', \"m1\", 60)) + m10", metrics=metrics)
    item = single_item(parameters)
    *inputs, expression_query = metric_data_queries(item)
    assert [query["Id"] for query in inputs] == ["q0_m1", "q0_m"]
    assert [query["ReturnData"] for query in inputs] == [False, False]
    assert expression_query == {"Id": "q0", "Expression": "q0_m1/q0_m + SUM(SEARCH('{m,m1} m1', \"m1\", 60)) + m10"}


def test_several_labels_are_separated_by_a_character_that_no_dimension_contains() -> None:
    parameters = CloudWatchParameters(expression="SEARCH('{N,a,b}')", labels=("a", "b"))
    item = single_item(parameters)
    assert next(metric_data_queries(item))["Label"] == "${PROP('Dim.a')}·${PROP('Dim.b')}"


@pytest.mark.parametrize(
    ("text", "is_select", "searches", "own_request"),
    [
        ("m1 / m2", False, False, False),
        (" select max(x)", True, True, True),
        ("SUM(SEARCH('x'))", False, True, True),
        ("SUM(METRICS())", False, False, True),
        ("m1 + 'METRICS SEARCH SELECT'", False, False, False),
    ],
)
def test_kinds_of_expressions_are_recognized(text: str, *, is_select: bool, searches: bool, own_request: bool) -> None:
    assert expressions.is_select(text) is is_select
    assert expressions.searches_metrics(text) is searches
    assert expressions.requires_own_request(text) is own_request


def test_series_with_equal_labels_on_several_pages_are_rejected() -> None:
    page = {"MetricDataResults": [{"Id": "q0", "Label": "x"}] * 2}
    assert len(series_by_id([page])["q0"]) == 2
    with pytest.raises(BackendRejected):
        series_by_id([page, page])

"""Conversion of rule parameters into GetMetricData requests, and their distribution over requests. No I/O."""

import re
from collections.abc import Hashable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from adapter.backends.cloudwatch import expressions
from adapter.backends.cloudwatch.settings import CloudWatchMetric, CloudWatchParameters
from adapter.errors import BadQuery

MAX_QUERIES: Final = 500
"""CloudWatch's limit on MetricDataQueries in one request."""

SEPARATOR: Final = "·"
"""Separates the values of several labels. Dimension values are ASCII, so that none contains it."""

_QUERY_ID: Final = re.compile(r"\bq(\d{1,4})(?=\b|_)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TimeRange(NamedTuple):
    """The time range of a request; the end is exclusive."""

    start: datetime
    end: datetime


class RequestItem(NamedTuple):
    """One query in one request."""

    id: str
    """ID of its result; the IDs of the metrics of its expression start with it."""

    parameters: CloudWatchParameters
    time_range: TimeRange


def time_range(parameters: CloudWatchParameters, now: datetime) -> TimeRange:
    """Return a range of complete periods. CloudWatch's periods start at multiples of their length."""
    end = now - parameters.delay
    end -= (end - _EPOCH) % parameters.period
    window = parameters.effective_window
    return TimeRange(end - window - (-window) % parameters.period, end)


def batch_key(parameters: CloudWatchParameters) -> Hashable:
    """Return a key that is equal for queries that can share a request: of one region and with the same time range."""
    own_request = repr(parameters) if expressions.requires_own_request(parameters.expression) else ""
    return parameters.region, parameters.period, parameters.effective_window, parameters.delay, own_request


def request_items(queries: Iterable[CloudWatchParameters], now: datetime) -> list[RequestItem]:
    """Assign each query the ID of its position, and its time range."""
    return [RequestItem(f"q{index}", query, time_range(query, now)) for index, query in enumerate(queries)]


def rejected_positions(error: BadQuery) -> frozenset[int]:
    """Return the positions of the queries that an error message names."""
    return frozenset(int(index) for index in _QUERY_ID.findall(error.detail))


def split_requests(items: Iterable[RequestItem]) -> Iterator[list[RequestItem]]:
    """Distribute items over requests of at most ``MAX_QUERIES`` MetricDataQueries each."""
    request: list[RequestItem] = []
    remaining = MAX_QUERIES
    for item in items:
        size = 1 + len(item.parameters.metrics)
        if size > remaining:
            yield request
            request, remaining = [], MAX_QUERIES
        request.append(item)
        remaining -= size
    yield request


def metric_data_queries(item: RequestItem) -> Iterator[dict[str, Any]]:
    """Return the MetricDataQueries of one item."""
    parameters, period = item.parameters, int(item.parameters.period.total_seconds())
    if not parameters.expression:
        yield {"Id": item.id, **_metric_stat(parameters.single_metric, period)}
        return
    for name, metric in parameters.metrics.items():
        yield {"Id": f"{item.id}_{name}", **_metric_stat(metric, period), "ReturnData": False}
    query: dict[str, Any] = {"Id": item.id, "Expression": _expression(item)}
    if expressions.is_select(parameters.expression):
        query["Period"] = period
    elif parameters.labels:
        query["Label"] = SEPARATOR.join(f"${{PROP('Dim.{label}')}}" for label in parameters.labels)
    yield query


def _expression(item: RequestItem) -> str:
    """Return the expression with metric names that are unique within the request."""
    expression, metrics = item.parameters.expression, item.parameters.metrics
    if expressions.is_select(expression):
        return expression
    return expressions.rename(expression, lambda name: f"{item.id}_{name}" if name in metrics else name)


def _metric_stat(metric: CloudWatchMetric, period: int) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in metric.dimensions.items()]
    stat: dict[str, Any] = {
        "Metric": {"Namespace": metric.namespace, "MetricName": metric.metric, "Dimensions": dimensions},
        "Period": period,
        "Stat": metric.statistic,
    }
    if metric.unit:
        stat["Unit"] = metric.unit
    return {"MetricStat": stat, **({"AccountId": metric.account_id} if metric.account_id else {})}

"""Conversion of GetMetricData responses into samples. No I/O."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from adapter.backends.cloudwatch import expressions
from adapter.backends.cloudwatch.query import SEPARATOR, RequestItem
from adapter.backends.connection.http_errors import MAX_DETAIL
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized
from adapter.sample import RawSample

Samples: TypeAlias = tuple[RawSample, ...]
_INVALID_RESPONSE: Final = "invalid response from CloudWatch"
_TRUNCATED: Final = "too many series, the result is truncated: narrow the expression"


class CloudWatchSeries:
    """One series of a response, merged from all pages."""

    def __init__(self) -> None:
        self.label = ""
        self.status = ""
        self.points: list[tuple[datetime, float]] = []
        self.messages: list[Mapping[str, Any]] = []

    def add(self, result: Mapping[str, Any]) -> None:
        """Add the result of one page; the status of the last page counts."""
        times, values = result.get("Timestamps") or [], result.get("Values") or []
        if len(times) != len(values) or not all(isinstance(value, int | float) for value in values):
            raise BackendRejected(_INVALID_RESPONSE, detail="Timestamps and Values do not match")
        self.label, self.status = str(result.get("Label", "")), str(result.get("StatusCode", ""))
        self.points += zip(times, map(float, values), strict=True)
        self.messages += result.get("Messages") or []


def series_by_id(pages: Sequence[Mapping[str, Any]]) -> dict[str, list[CloudWatchSeries]]:
    """Merge the pages of a response into series, by the ID of their query."""
    merged: dict[tuple[str, str, int], CloudWatchSeries] = {}
    for page in pages:
        seen: dict[tuple[str, str], int] = {}
        results = page.get("MetricDataResults")
        if not isinstance(results, list):
            raise BackendRejected(_INVALID_RESPONSE, detail="no MetricDataResults")
        for result in results:
            key = str(result.get("Id")), str(result.get("Label", ""))
            seen[key] = duplicates = seen.get(key, -1) + 1
            if duplicates and len(pages) > 1:
                raise BackendRejected("several series of a multi-page result have the same label: set labels")
            merged.setdefault((*key, duplicates), CloudWatchSeries()).add(result)
    by_id: dict[str, list[CloudWatchSeries]] = {}
    for (query_id, _, _), series in merged.items():
        by_id.setdefault(query_id, []).append(series)
    return by_id


def samples_by_item(items: Sequence[RequestItem], pages: Sequence[Mapping[str, Any]]) -> list[Samples | BackendError]:
    """Return the samples or the error of each item of a request."""
    by_id = series_by_id(pages)
    truncation = _format_messages([message for page in pages for message in page.get("Messages") or []])
    results: list[Samples | BackendError] = []
    for item in items:
        try:
            if truncation and expressions.searches_metrics(item.parameters.expression):
                raise BackendRejected(_TRUNCATED, detail=truncation)
            results.append(_samples(item, by_id.get(item.id, ())))
        except BackendError as error:
            results.append(error)
    return results


def _samples(item: RequestItem, all_series: Sequence[CloudWatchSeries]) -> Samples:
    if not all_series and not item.parameters.expression:
        raise BackendRejected("the response does not contain this metric")
    return tuple(sample for series in all_series for sample in _newest(item, series))


def _newest(item: RequestItem, series: CloudWatchSeries) -> Iterable[RawSample]:
    """Yield the newest sample of a series; raise if CloudWatch reports that the series is incomplete."""
    messages = _format_messages(series.messages)
    match series.status:
        case "Complete":
            pass
        case "Forbidden":
            raise BackendUnauthorized("permission denied for this metric: check the IAM policy", detail=messages)
        case "PartialData":
            raise BackendRejected("CloudWatch returned only part of the data", detail=messages)
        case _:
            raise BackendRejected("CloudWatch could not read this metric", detail=f"{series.status}: {messages}")
    if any("Exceeded" in str(message.get("Code")) for message in series.messages):
        raise BackendRejected(_TRUNCATED, detail=messages)
    (start, end), period, labels = item.time_range, item.parameters.period, _labels(item, series.label)
    points = [(_utc(time), value) for time, value in series.points]
    points = [point for point in points if start <= point[0] < end]
    if points:
        time, value = max(points, key=lambda point: point[0])
        yield RawSample(value, time, labels, period)
    elif series.messages:  # the metric exists without a value, for example after a division by zero
        yield RawSample(math.nan, end - period, labels, period)


def _labels(item: RequestItem, label: str) -> Mapping[str, str]:
    parameters = item.parameters
    if not parameters.expression:
        return parameters.dimensions
    if expressions.is_select(parameters.expression):
        return dict.fromkeys(parameters.labels, label)
    values = label.split(SEPARATOR) if parameters.labels else []
    if len(values) != len(parameters.labels):
        raise BackendRejected("the label of a series does not match labels", detail=label[:MAX_DETAIL])
    return dict(zip(parameters.labels, values, strict=True))


def _utc(time: object) -> datetime:
    if not isinstance(time, datetime):
        raise BackendRejected(_INVALID_RESPONSE, detail="invalid timestamp")
    return time.astimezone(UTC)


def _format_messages(messages: Sequence[Mapping[str, Any]]) -> str:
    return "; ".join(f"{message.get('Code')}: {message.get('Value')}" for message in messages)[:MAX_DETAIL]

"""Conversion of ``metrics:getBatch`` responses into samples. No I/O."""

import math
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from adapter.backends.azure.query import AzureBatch, AzureQuery
from adapter.backends.azure.resource_id import parse_resource_id
from adapter.errors import BackendError, BackendRejected, BadQuery
from adapter.sample import RawSample

_INVALID_LABEL_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_SUCCESS: Final = frozenset({"", "success"})
_MAX_DETAIL: Final = 300


class _AzureName(msgspec.Struct):
    value: str


class _AzureDimension(msgspec.Struct):
    """One dimension of a series. Azure returns the name in lower case."""

    name: _AzureName
    value: str | None = None


class _AzurePoint(msgspec.Struct, rename={"time": "timeStamp"}):
    """One interval, with the time at which it starts. Unknown aggregates are absent."""

    time: datetime
    average: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    total: float | None = None
    count: float | None = None


class _AzureTimeSeries(msgspec.Struct):
    metadatavalues: list[_AzureDimension] | None = None
    data: list[_AzurePoint] = []


class _AzureMetric(msgspec.Struct, rename="camel"):
    name: _AzureName
    timeseries: list[_AzureTimeSeries] = []
    error_code: str | None = None
    error_message: str | None = None


class _AzureResourceMetrics(msgspec.Struct):
    resourceid: str
    value: list[_AzureMetric]


class _AzureBatchResponse(msgspec.Struct):
    values: list[_AzureResourceMetrics]


class _AzureError(msgspec.Struct):
    code: str
    message: str = ""


class _AzureErrorBody(msgspec.Struct):
    error: _AzureError


def error_text(body: bytes) -> str:
    """Return code and message of an error response; empty if it is not one of Azure, but for example of a proxy."""
    try:
        error = msgspec.json.decode(body, type=_AzureErrorBody).error
    except (msgspec.DecodeError, RecursionError):
        return ""
    return f"{error.code}: {error.message}"[:_MAX_DETAIL]


def samples_by_query(
    body: bytes, queries: Sequence[AzureQuery], now: datetime
) -> list[tuple[RawSample, ...] | BackendError]:
    """Return the samples or the error of each query; raise ``BackendRejected`` if the response is invalid."""
    try:
        if body[:1] == b'"':  # Azure sometimes returns the document as a JSON string
            body = msgspec.json.decode(body, type=str).encode()
        response = msgspec.json.decode(body, type=_AzureBatchResponse)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected("the response is not one of Azure Monitor", detail=str(error)[:_MAX_DETAIL]) from None
    by_resource = {metrics.resourceid.lower(): metrics for metrics in response.values}
    results: list[tuple[RawSample, ...] | BackendError] = []
    for query in queries:
        try:
            results.append(_samples(by_resource.get(query.resource.lower()), query, now))
        except BackendError as error:
            results.append(error)
    return results


def _samples(metrics: _AzureResourceMetrics | None, query: AzureQuery, now: datetime) -> tuple[RawSample, ...]:
    if metrics is None:
        raise BackendRejected("the response does not contain this resource")
    resource, batch = parse_resource_id(query.resource), query.batch
    labels = {"resource_name": resource.name, "resource_group": resource.group}
    series = [each for metric in metrics.value for each in _series(metric, batch)]
    if batch.filter and len(series) > batch.max_series:
        raise BackendRejected("more series than maxSeries")
    return tuple(_sample(each, batch, labels, now) for each in series)


def _series(metric: _AzureMetric, batch: AzureBatch) -> Iterator[_AzureTimeSeries]:
    if (metric.error_code or "").lower() not in _SUCCESS:
        detail = f"{metric.error_code}: {metric.error_message or ''}"
        raise BadQuery("metric not found for this resource: check metric and resource", detail=detail[:_MAX_DETAIL])
    if metric.name.value.lower() == batch.metric.lower():
        yield from metric.timeseries


def _sample(series: _AzureTimeSeries, batch: AzureBatch, resource_labels: dict[str, str], now: datetime) -> RawSample:
    """Return the newest value, or NaN if there is none: a missing value is never zero."""
    dimensions = {
        _INVALID_LABEL_CHARACTERS.sub("_", dimension.name.value): dimension.value or ""
        for dimension in series.metadatavalues or ()
    }
    labels = dimensions | resource_labels  # a dimension must not replace the labels that identify the resource
    points = [
        (_utc(point.time), value) for point in series.data if (value := getattr(point, batch.aggregation)) is not None
    ]
    if not points:
        return RawSample(math.nan, now, labels, batch.granularity)
    start, value = max(points)
    return RawSample(value, min(start + batch.granularity, now), labels, batch.granularity)


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)

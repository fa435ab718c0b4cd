"""Requests and responses of ``metrics:getBatch``, which returns a metric of up to 50 resources. No I/O."""

import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias
from urllib.parse import quote, urlencode

import msgspec

from adapter.backends.azure.resource_id import parse_resource_id
from adapter.backends.azure.settings import AzureParameters
from adapter.backends.connection.http_errors import MAX_DETAIL
from adapter.backends.connection.json_body import decode_body
from adapter.errors import BackendError, BackendRejected, BadQuery
from adapter.sample import RawSample

Samples: TypeAlias = tuple[RawSample, ...]
_API_VERSION: Final = "2024-02-01"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PROVIDER: Final = "Azure Monitor"
_INVALID_LABEL_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_SUCCESS: Final = frozenset({"", "success"})


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


def build_queries(parameters: AzureParameters) -> list[AzureParameters]:
    """Return one query for each resource of a rule."""
    ids = parameters.resources or (parameters.resource,)
    namespace = parameters.namespace or parse_resource_id(ids[0]).type
    return [msgspec.structs.replace(parameters, resource=id_, resources=(), namespace=namespace) for id_ in ids]


def batch_key(query: AzureParameters) -> Hashable:
    """Return a key that is equal for queries that differ only in the resource, within one subscription."""
    return parse_resource_id(query.resource).subscription, repr(msgspec.structs.replace(query, resource=""))


def target(query: AzureParameters, now: datetime) -> str:
    """Return the path and query string of a batch's request; its time range consists of complete intervals."""
    end = _EPOCH + ((now - query.delay) - _EPOCH) // query.granularity * query.granularity
    fields = {
        "api-version": _API_VERSION,
        "starttime": _format_time(end - query.window),
        "endtime": _format_time(end),
        "interval": f"PT{query.granularity // timedelta(minutes=1)}M",
        "metricnamespace": query.namespace,
        "metricnames": query.metric.replace(",", "%2"),  # Azure's escape for a comma, which separates names
        "aggregation": query.aggregation,
    }
    if series_filter := query.filter or _filter(query.dimensions):
        # One more than the limit reveals that the result would have been truncated.
        fields |= {"filter": series_filter, "top": str(query.max_series + 1)}
    if query.roll_up_by:
        fields["rollupby"] = query.roll_up_by
    subscription = parse_resource_id(query.resource).subscription
    return f"/subscriptions/{subscription}/metrics:getBatch?{urlencode(fields, quote_via=quote)}"


def _filter(dimensions: Mapping[str, str]) -> str:
    return " and ".join(f"{_escape(name)} eq '{_escape(value)}'" for name, value in sorted(dimensions.items()))


def _escape(text: str) -> str:
    """Escape quotes and parentheses; Azure expects parentheses percent-encoded twice."""
    return text.replace("'", "''").replace("(", "%2528").replace(")", "%2529")


def _format_time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def samples_by_query(body: bytes, queries: Sequence[AzureParameters], now: datetime) -> list[Samples | BackendError]:
    """Return the samples or the error of each query; raise ``BackendRejected`` if the response is invalid."""
    if body[:1] == b'"':  # Azure sometimes returns the document as a JSON string
        body = decode_body(body, str, _PROVIDER).encode()
    response = decode_body(body, _AzureBatchResponse, _PROVIDER)
    by_resource = {metrics.resourceid.lower(): metrics for metrics in response.values}
    results: list[Samples | BackendError] = []
    for query in queries:
        try:
            results.append(_samples(by_resource.get(query.resource.lower()), query, now))
        except BackendError as error:
            results.append(error)
    return results


def _samples(metrics: _AzureResourceMetrics | None, query: AzureParameters, now: datetime) -> Samples:
    if metrics is None:
        raise BackendRejected("the response does not contain this resource")
    resource = parse_resource_id(query.resource)
    labels = {"resource_name": resource.name, "resource_group": resource.group}
    all_series = [series for metric in metrics.value for series in _series(metric, query.metric)]
    if (query.filter or query.dimensions) and len(all_series) > query.max_series:
        raise BackendRejected("more series than maxSeries")
    return tuple(_sample(series, query, labels, now) for series in all_series)


def _series(metric: _AzureMetric, name: str) -> Iterator[_AzureTimeSeries]:
    if (metric.error_code or "").lower() not in _SUCCESS:
        detail = f"{metric.error_code}: {metric.error_message or ''}"
        raise BadQuery("metric not found for this resource: check metric and resource", detail=detail[:MAX_DETAIL])
    if metric.name.value.lower() == name.lower():
        yield from metric.timeseries


def _sample(
    series: _AzureTimeSeries, query: AzureParameters, resource_labels: dict[str, str], now: datetime
) -> RawSample:
    """Return the newest value, or NaN if there is none: a missing value is never zero."""
    dimensions = {
        _INVALID_LABEL_CHARACTERS.sub("_", dimension.name.value): dimension.value or ""
        for dimension in series.metadatavalues or ()
    }
    labels = dimensions | resource_labels  # a dimension must not replace the labels that identify the resource
    points = [
        (_utc(point.time), value) for point in series.data if (value := getattr(point, query.aggregation)) is not None
    ]
    if not points:
        return RawSample(math.nan, now, labels, query.granularity)
    start, value = max(points)
    return RawSample(value, min(start + query.granularity, now), labels, query.granularity)


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)

"""Requests and responses of ``projects.timeSeries.list``. No I/O."""

import math
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import quote, urlencode

import msgspec

from adapter.backends.connection.json_body import decode_body
from adapter.backends.google.settings import GoogleParameters
from adapter.errors import BackendRejected, BadQuery
from adapter.sample import RawSample
from autoscaler.values.timestamps import format_rfc3339

PROVIDER: Final = "Cloud Monitoring"
AwareDatetime: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class _TypedValue(msgspec.Struct, rename="camel"):
    """A value, in the field of its type. 64-bit integers, NaN and infinities are strings in JSON."""

    bool_value: bool | None = None
    int64_value: int | str | None = None
    double_value: float | str | None = None
    string_value: str | None = None
    distribution_value: dict[str, Any] | None = None


class _PointInterval(msgspec.Struct, rename="camel"):
    """The time of a gauge, or the interval of a delta or cumulative point."""

    end_time: AwareDatetime
    start_time: AwareDatetime | None = None


class _GooglePoint(msgspec.Struct):
    interval: _PointInterval
    value: _TypedValue


class _LabelSet(msgspec.Struct):
    labels: dict[str, str] = {}


class _ResourceMetadata(msgspec.Struct, rename="camel"):
    user_labels: dict[str, str] = {}


class GoogleTimeSeries(msgspec.Struct):
    """The points of one metric of one resource, or of an aggregation."""

    metric: _LabelSet = msgspec.field(default_factory=_LabelSet)
    resource: _LabelSet = msgspec.field(default_factory=_LabelSet)
    metadata: _ResourceMetadata = msgspec.field(default_factory=_ResourceMetadata)
    points: list[_GooglePoint] = []


class _ExecutionError(msgspec.Struct):
    message: str = ""


class TimeSeriesPage(msgspec.Struct, rename="camel"):
    """One page of the result."""

    time_series: list[GoogleTimeSeries] = []
    next_page_token: str = ""
    execution_errors: list[_ExecutionError] = []


def target(parameters: GoogleParameters, project: str, page_size: int, now: datetime) -> str:
    """Return the path and query string of the request for the first page."""
    end = now - parameters.delay
    query = [
        ("filter", parameters.filter),
        ("interval.startTime", _format_time(end - parameters.window)),
        ("interval.endTime", _format_time(end)),
        ("view", "FULL"),
        ("pageSize", str(page_size)),
    ]
    if parameters.aligner != "none":
        query += [
            ("aggregation.alignmentPeriod", f"{parameters.alignment_period.total_seconds():g}s"),
            ("aggregation.perSeriesAligner", f"ALIGN_{_constant(parameters.aligner)}"),
            ("aggregation.crossSeriesReducer", f"REDUCE_{_constant(parameters.reducer)}"),
            *(("aggregation.groupByFields", field) for field in parameters.group_by),
        ]
    return f"/v3/projects/{quote(project, safe='')}/timeSeries?{urlencode(query, quote_via=quote)}"


def decode_page(body: bytes) -> TimeSeriesPage:
    """Decode a page; raise ``BackendRejected`` if it is invalid or incomplete."""
    page = decode_body(body, TimeSeriesPage, PROVIDER)
    if page.execution_errors:
        raise BackendRejected("the result may be partial", detail=page.execution_errors[0].message[:300])
    return page


def samples(all_series: Iterable[GoogleTimeSeries], now: datetime) -> tuple[RawSample, ...]:
    """Return the newest point of each series."""
    return tuple(_sample(series, now) for series in all_series)


def _sample(series: GoogleTimeSeries, now: datetime) -> RawSample:
    if not series.points:
        return RawSample(math.nan, now, _labels(series))
    newest = max(series.points, key=lambda point: point.interval.end_time)
    start, end = newest.interval.start_time, newest.interval.end_time
    window = end - start if start and timedelta() < end - start < timedelta(days=1) else None
    return RawSample(_number(newest.value), end, _labels(series), window)


def _labels(series: GoogleTimeSeries) -> dict[str, str]:
    """Merge user, resource and metric labels; a label that a metric label replaces is kept as ``resource_NAME``."""
    labels = series.metadata.user_labels | series.resource.labels
    for name, value in series.metric.labels.items():
        if labels.get(name, value) != value:
            labels[f"resource_{name}"] = labels[name]
        labels[name] = value
    return labels


def _number(value: _TypedValue) -> float:
    if value.distribution_value is not None:
        raise BadQuery("the metric is a distribution: set an aligner such as percentile99")
    if value.string_value is not None:
        raise BadQuery("the metric is a string: set an aligner such as count")
    for number in (value.double_value, value.int64_value, value.bool_value):
        if number is not None:
            try:
                return float(number)
            except (ValueError, OverflowError):
                raise BackendRejected(f"invalid response from {PROVIDER}", detail=str(number)[:100]) from None
    return math.nan


def _constant(name: str) -> str:
    """Convert a value of a setting to the API's constant: ``percentile99`` to ``PERCENTILE_99``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z\d])", "_", name).upper()


def _format_time(time: datetime) -> str:
    return format_rfc3339(time, "milliseconds")

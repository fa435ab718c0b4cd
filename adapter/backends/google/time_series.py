"""Time series by a filter: what is asked, and what comes of it; pure."""

import math
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote, urlencode

import msgspec

from adapter.backends.google.settings import GoogleParameters
from adapter.errors import BackendRejected, BadQuery
from adapter.sample import RawSample

Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class Typed(msgspec.Struct, rename="camel"):
    """A value, by its type. JSON has no large integers and no NaN, so those are texts."""

    bool_value: bool | None = None
    int64_value: int | str | None = None
    double_value: float | str | None = None
    string_value: str | None = None
    distribution_value: dict[str, Any] | None = None


class Interval(msgspec.Struct, rename="camel"):
    """When a point was, or since when and until when it counted."""

    end_time: Moment
    start_time: Moment | None = None


class Point(msgspec.Struct):
    """One number at one time."""

    interval: Interval
    value: Typed


class Labels(msgspec.Struct):
    """What a metric or a resource is, by its labels."""

    labels: dict[str, str] = {}


class Metadata(msgspec.Struct, rename="camel"):
    """What else is known of a resource."""

    user_labels: dict[str, str] = {}


class Series(msgspec.Struct):
    """The points of one metric of one resource, or of several that were put together."""

    metric: Labels = msgspec.field(default_factory=Labels)
    resource: Labels = msgspec.field(default_factory=Labels)
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    points: list[Point] = []


class Status(msgspec.Struct):
    """What went wrong with a part of the answer."""

    message: str = ""


class Page(msgspec.Struct, rename="camel"):
    """Some of the series."""

    time_series: list[Series] = []
    next_page_token: str = ""
    execution_errors: list[Status] = []


def target(asked: GoogleParameters, project: str, page_size: int, now: datetime) -> str:
    """Say the path and the query of the request, but for which page."""
    end = now - asked.delay
    wanted = [
        ("filter", asked.filter),
        ("interval.startTime", _written(end - asked.window)),
        ("interval.endTime", _written(end)),
        ("view", "FULL"),
        ("pageSize", str(page_size)),
    ]
    if asked.aligner != "none":
        wanted += [
            ("aggregation.alignmentPeriod", f"{asked.alignment_period.total_seconds():g}s"),
            ("aggregation.perSeriesAligner", f"ALIGN_{_shouted(asked.aligner)}"),
            ("aggregation.crossSeriesReducer", f"REDUCE_{_shouted(asked.reducer)}"),
            *(("aggregation.groupByFields", field) for field in asked.group_by),
        ]
    return f"/v3/projects/{quote(asked.project or project, safe='')}/timeSeries?{urlencode(wanted, quote_via=quote)}"


def decoded(body: bytes) -> Page:
    """Read an answer; raise ``BackendRejected`` if it is none of Google's, or not all of it."""
    try:
        page = msgspec.json.decode(body, type=Page)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected("it answers, but not as Cloud Monitoring does", detail=str(error)[:200]) from None
    if page.execution_errors:
        raise BackendRejected("the answer is not complete", detail=page.execution_errors[0].message[:300])
    return page


def samples(series: Iterable[Series], now: datetime) -> tuple[RawSample, ...]:
    """Make a sample of the newest point of each series."""
    return tuple(_sample(each, now) for each in series)


def _sample(series: Series, now: datetime) -> RawSample:
    if not series.points:
        return RawSample(math.nan, now, _labels(series))
    newest = max(series.points, key=lambda point: point.interval.end_time)
    start, end = newest.interval.start_time, newest.interval.end_time
    window = end - start if start and timedelta() < end - start < timedelta(days=1) else None
    return RawSample(_number(newest.value), end, _labels(series), window)


def _labels(series: Series) -> dict[str, str]:
    """Take the labels of all sorts; of two that are called alike the metric's keeps the name."""
    ours = series.metadata.user_labels | series.resource.labels
    for name, value in series.metric.labels.items():
        if ours.get(name, value) != value:
            ours[f"resource_{name}"] = ours[name]
        ours[name] = value
    return ours


def _number(value: Typed) -> float:
    if value.distribution_value is not None:
        raise BadQuery("the metric is a distribution: an aligner such as percentile99 makes it a number")
    if value.string_value is not None:
        raise BadQuery("the metric is a text: an aligner such as count makes it a number")
    for known in (value.double_value, value.int64_value, value.bool_value):
        if known is not None:
            return _read(known)
    return math.nan


def _read(number: float | str) -> float:
    try:
        return float(number)
    except (ValueError, OverflowError):
        raise BackendRejected("it answers, but not with a number", detail=str(number)[:100]) from None


def _shouted(name: str) -> str:
    """Write ``percentile99`` as ``PERCENTILE_99``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z\d])", "_", name).upper()


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

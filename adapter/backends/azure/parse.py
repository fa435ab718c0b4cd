"""From what Azure says of resources to samples; pure."""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from adapter.backends.azure.query import Call, Question
from adapter.backends.azure.resource_id import parsed
from adapter.errors import BackendError, BackendRejected, BadQuery
from adapter.sample import RawSample

_NOT_IN_A_LABEL: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_FINE: Final = frozenset({"", "success"})


class Name(msgspec.Struct):
    """What something is called."""

    value: str


class Dimension(msgspec.Struct):
    """One dimension of a series; its name is told in lower case."""

    name: Name
    value: str | None = None


class Point(msgspec.Struct, rename={"time": "timeStamp"}):
    """One granularity, by its beginning. What is not known of it is absent."""

    time: datetime
    average: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    total: float | None = None
    count: float | None = None


class TimeSeries(msgspec.Struct):
    """The points of one combination of dimensions."""

    metadatavalues: list[Dimension] | None = None
    data: list[Point] = []


class Metric(msgspec.Struct, rename="camel"):
    """A metric of one resource, or why there is none."""

    name: Name
    timeseries: list[TimeSeries] = []
    error_code: str | None = None
    error_message: str | None = None


class Result(msgspec.Struct):
    """What there is of one resource."""

    resourceid: str
    value: list[Metric]


class Batch(msgspec.Struct):
    """What there is of all resources of one call."""

    values: list[Result]


class Said(msgspec.Struct):
    """What Azure says of an error."""

    code: str
    message: str = ""


class Refusal(msgspec.Struct):
    """Why not."""

    error: Said


def refusal(body: bytes) -> str:
    """Say why Azure refused a call; nothing, if it is not Azure who says so, as a proxy on the way."""
    try:
        said = msgspec.json.decode(body, type=Refusal).error
    except (msgspec.DecodeError, RecursionError):
        return ""
    return f"{said.code}: {said.message}"[:300]


def decoded(body: bytes) -> Batch:
    """Read an answer; raise ``BackendRejected`` if it is none of Azure's."""
    try:
        if body[:1] == b'"':  # now and then the whole answer is a text with JSON in it
            body = msgspec.json.decode(body, type=str).encode()
        return msgspec.json.decode(body, type=Batch)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected("it answers, but not as Azure Monitor does", detail=str(error)[:200]) from None


def answers(batch: Batch, asked: list[Question], now: datetime) -> list[tuple[RawSample, ...] | BackendError]:
    """Give each question what was said of its resource."""
    by_resource = {result.resourceid.lower(): result for result in batch.values}
    found: list[tuple[RawSample, ...] | BackendError] = []
    for question in asked:
        result = by_resource.get(question.resource.lower())
        try:
            found.append(_samples(result, question, now))
        except BackendError as error:
            found.append(error)
    return found


def _samples(result: Result | None, question: Question, now: datetime) -> tuple[RawSample, ...]:
    if result is None:
        raise BackendRejected("it answers, but not for this resource")
    resource, call = parsed(question.resource), question.call
    ours = {"resource_name": resource.name, "resource_group": resource.group}
    series = [each for metric in result.value for each in _series(metric, call)]
    if call.filter and len(series) > call.max_series:
        raise BackendRejected("there are more series than maxSeries")
    return tuple(_sample(each, call, ours, now) for each in series)


def _series(metric: Metric, call: Call) -> Iterator[TimeSeries]:
    if (metric.error_code or "").lower() not in _FINE:
        detail = f"{metric.error_code}: {metric.error_message or ''}"
        raise BadQuery("Azure does not have this metric of this resource", detail=detail[:300])
    if metric.name.value.lower() == call.metric.lower():
        yield from metric.timeseries


def _sample(series: TimeSeries, call: Call, ours: dict[str, str], now: datetime) -> RawSample:
    """Take the newest number. If Azure knows none, nobody does: NaN, and never zero."""
    labels = {_label(each.name.value): each.value or "" for each in series.metadatavalues or ()} | ours
    known = [
        (_utc(point.time), value) for point in series.data if (value := getattr(point, call.aggregation)) is not None
    ]
    if not known:
        return RawSample(math.nan, now, labels, call.granularity)
    begun, value = max(known)
    return RawSample(value, min(begun + call.granularity, now), labels, call.granularity)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _label(name: str) -> str:
    return _NOT_IN_A_LABEL.sub("_", name)

"""From what Datadog answers to samples; pure."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from adapter.backends.datadog.settings import DatadogParameters
from adapter.errors import BackendRejected, BadQuery
from adapter.sample import RawSample

_NOT_DATADOG = "it answers, but not as Datadog does"


class Series(msgspec.Struct):
    """Which question, and which group of its answer."""

    query_index: int
    group_tags: list[str] | None = None


class Attributes(msgspec.Struct):
    """Series, their common times in milliseconds, and the values of each at those times."""

    series: list[Series] | None = None
    times: list[int] | None = None
    values: list[list[float | None]] | None = None


class Data(msgspec.Struct):
    """What was found."""

    attributes: Attributes


class Response(msgspec.Struct):
    """What was found, or why not."""

    data: Data | None = None
    errors: str | list[str] | None = None


def samples(body: bytes, asked: Sequence[DatadogParameters], now: datetime) -> list[tuple[RawSample, ...]]:
    """Give each question its own series; raise if the answer is none."""
    try:
        said = msgspec.json.decode(body, type=Response)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected(_NOT_DATADOG, detail=str(error)[:200]) from None
    if said.errors:
        raise BadQuery("it cannot answer the query", detail=str(said.errors)[:300])
    if said.data is None:
        raise BackendRejected(_NOT_DATADOG, detail="no data")
    return _sorted(said.data.attributes, asked, now)


def _sorted(found: Attributes, asked: Sequence[DatadogParameters], now: datetime) -> list[tuple[RawSample, ...]]:
    times, series, values = found.times or [], found.series or [], found.values or []
    if len(series) != len(values) or any(len(each) != len(times) for each in values):
        raise BackendRejected(_NOT_DATADOG, detail="series, times and values do not fit")
    answers: list[list[RawSample]] = [[] for _ in asked]
    for one, numbers in zip(series, values, strict=True):
        if not 0 <= one.query_index < len(asked):
            raise BackendRejected(_NOT_DATADOG, detail=f"query_index {one.query_index}")
        number, at = newest(times, numbers, asked[one.query_index].skip_newest)
        answers[one.query_index].append(RawSample(number, at or now, labels(one.group_tags or [])))
    return [tuple(each) for each in answers]


def newest(times: Sequence[int], values: Sequence[float | None], skip: int) -> tuple[float, datetime | None]:
    """Find the newest number and its time; of a series that has none, NaN."""
    known = sorted((at, value) for at, value in zip(times, values, strict=True) if value is not None)
    if len(known) <= skip:
        return math.nan, None
    at, value = known[-1 - skip]
    try:
        return value, datetime.fromtimestamp(at / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise BackendRejected(_NOT_DATADOG, detail="a time that is none") from None


def labels(tags: Sequence[str]) -> dict[str, str]:
    """Make labels of tags; one without a value has an empty one."""
    return {key: value for key, _, value in (tag.partition(":") for tag in tags)}

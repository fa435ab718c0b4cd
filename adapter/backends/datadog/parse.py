"""Conversion of timeseries responses into samples. No I/O."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from adapter.backends.datadog.settings import DatadogParameters
from adapter.errors import BackendRejected, BadQuery
from adapter.sample import RawSample

_INVALID_RESPONSE: Final = "the response is not one of Datadog"


class _DatadogSeries(msgspec.Struct):
    query_index: int
    group_tags: list[str] | None = None


class _TimeseriesAttributes(msgspec.Struct):
    """Series, the times in milliseconds that they have in common, and the values of each series at those times."""

    series: list[_DatadogSeries] | None = None
    times: list[int] | None = None
    values: list[list[float | None]] | None = None


class _TimeseriesData(msgspec.Struct):
    attributes: _TimeseriesAttributes


class _TimeseriesResponse(msgspec.Struct):
    data: _TimeseriesData | None = None
    errors: str | list[str] | None = None


def samples_by_query(body: bytes, batch: Sequence[DatadogParameters], now: datetime) -> list[tuple[RawSample, ...]]:
    """Return the samples of each query; raise if the response is invalid."""
    try:
        response = msgspec.json.decode(body, type=_TimeseriesResponse)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected(_INVALID_RESPONSE, detail=str(error)[:200]) from None
    if response.errors:
        raise BadQuery("Datadog rejected the query", detail=str(response.errors)[:300])
    if response.data is None:
        raise BackendRejected(_INVALID_RESPONSE, detail="no data")
    attributes = response.data.attributes
    times, series, values = attributes.times or [], attributes.series or [], attributes.values or []
    if len(series) != len(values) or any(len(points) != len(times) for points in values):
        raise BackendRejected(_INVALID_RESPONSE, detail="series, times and values have different lengths")
    results: list[list[RawSample]] = [[] for _ in batch]
    for each, points in zip(series, values, strict=True):
        if not 0 <= each.query_index < len(batch):
            raise BackendRejected(_INVALID_RESPONSE, detail=f"query_index {each.query_index}")
        value, time = _newest(times, points, batch[each.query_index].skip_newest)
        results[each.query_index].append(RawSample(value, time or now, _labels(each.group_tags or [])))
    return [tuple(samples) for samples in results]


def _newest(times: Sequence[int], values: Sequence[float | None], skip: int) -> tuple[float, datetime | None]:
    """Return the newest value and its time, or NaN for a series without a value."""
    points = sorted((time, value) for time, value in zip(times, values, strict=True) if value is not None)
    if len(points) <= skip:
        return math.nan, None
    time, value = points[-1 - skip]
    try:
        return value, datetime.fromtimestamp(time / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise BackendRejected(_INVALID_RESPONSE, detail="invalid time") from None


def _labels(tags: Sequence[str]) -> dict[str, str]:
    """Return tags as labels; a tag without a value has an empty value."""
    return {key: value for key, _, value in (tag.partition(":") for tag in tags)}

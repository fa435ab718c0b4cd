"""Requests and responses of ``/api/v2/query/timeseries``. No I/O."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from adapter.backends.connection.json_body import decode_body
from adapter.backends.datadog.settings import FORMULA_NAMES, DatadogParameters
from adapter.errors import BackendRejected, BadQuery
from adapter.sample import RawSample

Samples: TypeAlias = tuple[RawSample, ...]
_SINGLE_QUERY: Final = "a"
_PROVIDER: Final = "Datadog"
_INVALID_RESPONSE: Final = f"invalid response from {_PROVIDER}"


def build_request(batch: Sequence[DatadogParameters], now: datetime) -> dict[str, Any]:
    """Return the body with one formula for each rule, in order; the rules have the same window.

    The names of queries get a prefix for their rule, so that the names of several rules do not collide.
    """
    queries, formulas = [], []
    for number, parameters in enumerate(batch):
        rule_queries = parameters.queries or {_SINGLE_QUERY: parameters.query}
        unique_names = {name: f"r{number}q{position}" for position, name in enumerate(rule_queries)}
        queries += [
            {"data_source": "metrics", "name": unique_names[name], "query": query}
            for name, query in rule_queries.items()
        ]
        formulas.append({"formula": rename_queries(parameters.formula or _SINGLE_QUERY, unique_names)})
    attributes = {
        "from": _milliseconds(now - batch[0].window),
        "to": _milliseconds(now),
        "queries": queries,
        "formulas": formulas,
    }
    return {"data": {"type": "timeseries_request", "attributes": attributes}}


def rename_queries(formula: str, new_names: Mapping[str, str]) -> str:
    """Rename the queries in a formula; functions and quoted strings stay unchanged."""

    def renamed(match: re.Match[str]) -> str:
        name = match["name"]
        return match[0] if not name or match["call"] else new_names.get(name, name)

    return FORMULA_NAMES.sub(renamed, formula)


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)


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


def samples_by_query(body: bytes, batch: Sequence[DatadogParameters], now: datetime) -> list[Samples]:
    """Return the samples of each query; raise if the response is invalid."""
    response = decode_body(body, _TimeseriesResponse, _PROVIDER)
    if response.errors:
        raise BadQuery("Datadog rejected the query", detail=str(response.errors)[:300])
    if response.data is None:
        raise BackendRejected(_INVALID_RESPONSE, detail="no data")
    attributes = response.data.attributes
    times, all_series, values = attributes.times or [], attributes.series or [], attributes.values or []
    if len(all_series) != len(values) or any(len(points) != len(times) for points in values):
        raise BackendRejected(_INVALID_RESPONSE, detail="series, times and values have different lengths")
    results: list[list[RawSample]] = [[] for _ in batch]
    for series, points in zip(all_series, values, strict=True):
        if not 0 <= series.query_index < len(batch):
            raise BackendRejected(_INVALID_RESPONSE, detail=f"query_index {series.query_index}")
        value, time = _newest(times, points, batch[series.query_index].skip_newest)
        results[series.query_index].append(RawSample(value, time or now, _labels(series.group_tags or [])))
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

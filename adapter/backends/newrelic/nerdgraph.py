"""GraphQL documents of NerdGraph with the queries of several rules, and conversion of its responses. No I/O.

Queries and accounts are variables of the document, so that no text of a rule becomes part of it.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from adapter.backends.connection.json_body import decode_body
from adapter.backends.newrelic.errors import GraphQLError, from_graphql_error
from adapter.backends.newrelic.settings import NewRelicParameters
from adapter.errors import BackendError, BackendRejected, BadQuery
from adapter.sample import RawSample

Row: TypeAlias = dict[str, Any]
Samples: TypeAlias = tuple[RawSample, ...]
PING: Final[dict[str, Any]] = {"query": "{ actor { user { id } } }"}
_MAX_TIMEOUT: Final = 60
"""Seconds that New Relic allows a query to run in most accounts."""

_PROVIDER: Final = "New Relic"
_INVALID_RESPONSE: Final = f"invalid response from {_PROVIDER}"
_FACET: Final = "facet"
_TIME_COLUMNS: Final = ("timestamp", "latest.timestamp")
_TIMESERIES_COLUMNS: Final = frozenset({"beginTimeSeconds", "comparison"})
"""Columns that only rows of TIMESERIES and COMPARE WITH have."""


def build_request(batch: Sequence[NewRelicParameters], account: int, seconds: float) -> dict[str, Any]:
    """Return a document with each query under its own alias and a timeout in seconds."""
    timeout = min(max(1, math.ceil(seconds)), _MAX_TIMEOUT)
    declarations = ", ".join(f"$a{number}: Int!, $q{number}: Nrql!" for number in range(len(batch)))
    fields = " ".join(
        f"r{number}: account(id: $a{number}) {{ nrql(query: $q{number}, timeout: {timeout}) "
        "{ results metadata { facets timeWindow { end } } } }"
        for number in range(len(batch))
    )
    variables: dict[str, Any] = {}
    for number, parameters in enumerate(batch):
        variables[f"a{number}"] = parameters.account or account
        variables[f"q{number}"] = parameters.query
    return {"query": f"query({declarations}) {{ actor {{ {fields} }} }}", "variables": variables}


class _NrqlTimeWindow(msgspec.Struct):
    end: int | None = None


class _NrqlMetadata(msgspec.Struct, rename={"time_window": "timeWindow"}):
    facets: list[str] | None = None
    time_window: _NrqlTimeWindow | None = None


class _NrqlResult(msgspec.Struct):
    results: list[Row]
    metadata: _NrqlMetadata


class _AccountResult(msgspec.Struct):
    """The result of one query; null if it failed."""

    nrql: _NrqlResult | None = None


class _NerdGraphData(msgspec.Struct):
    """The results by alias."""

    actor: dict[str, _AccountResult | None] | None = None


class _NerdGraphResponse(msgspec.Struct):
    data: _NerdGraphData | None = None
    errors: list[GraphQLError] | None = None


def samples_by_query(body: bytes, batch: Sequence[NewRelicParameters], now: datetime) -> list[Samples | BackendError]:
    """Return the samples or the error of each query; raise if the whole request failed."""
    response = decode_body(body, _NerdGraphResponse, _PROVIDER)
    aliases = [f"r{number}" for number in range(len(batch))]
    errors = response.errors or []
    by_alias = {error.alias: error for error in reversed(errors) if error.alias in aliases}
    results = (response.data.actor if response.data is not None else None) or {}
    if not results and not by_alias:
        raise from_graphql_error(errors[0]) if errors else BackendRejected(_INVALID_RESPONSE, detail="no data")
    return [
        _samples_or_error(results.get(name), by_alias.get(name), parameters, now)
        for name, parameters in zip(aliases, batch, strict=True)
    ]


def _samples_or_error(
    result: _AccountResult | None, error: GraphQLError | None, parameters: NewRelicParameters, now: datetime
) -> Samples | BackendError:
    if result is None or result.nrql is None:
        return from_graphql_error(error) if error is not None else BackendRejected(_INVALID_RESPONSE, detail="no data")
    try:
        return tuple(_sample(row, result.nrql.metadata, parameters, now) for row in result.nrql.results)
    except BackendError as invalid_row:
        return invalid_row


def _sample(row: Row, metadata: _NrqlMetadata, parameters: NewRelicParameters, now: datetime) -> RawSample:
    if row.keys() & _TIMESERIES_COLUMNS:
        raise BadQuery("the query returns several values per series: remove TIMESERIES or COMPARE WITH")
    facets = metadata.facets or []
    return RawSample(_value(row, facets, parameters.value), _time(row, metadata, now), _labels(row, facets))


def _labels(row: Row, facets: Sequence[str]) -> dict[str, str]:
    """Return the facets of a row, which New Relic returns as columns or, in their order, in the column ``facet``."""
    facet = row.get(_FACET)
    ordered = facet if isinstance(facet, list) else [facet]
    labels = {}
    for position, name in enumerate(facets):
        value = row.get(name, ordered[position] if len(ordered) == len(facets) else None)
        if value is not None:
            labels[name] = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return labels


def _value(row: Row, facets: Sequence[str], column: str) -> float:
    columns = [name for name in row if name not in {*facets, _FACET, *_TIME_COLUMNS}]
    if column and column not in row:
        raise BadQuery(f"the query returns no column {column!r}", detail=f"columns: {', '.join(columns)[:200]}")
    if not column and len(columns) != 1:
        detail = f"columns: {', '.join(columns)[:200]}"
        raise BadQuery("the query does not return exactly one value column: set value", detail=detail)
    value = row[column or columns[0]]
    if isinstance(value, Mapping) and len(value) == 1:  # as of percentile(duration, 95): {"95": 0.2}
        (value,) = value.values()
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadQuery("the value column is not numeric", detail=type(value).__name__)
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _time(row: Row, metadata: _NrqlMetadata, now: datetime) -> datetime:
    """Return the time of the event, or the end of the query's time range, but never a time in the future."""
    milliseconds = next((row[name] for name in _TIME_COLUMNS if row.get(name) is not None), None)
    if milliseconds is None and metadata.time_window is not None:
        milliseconds = metadata.time_window.end
    if milliseconds is None:
        return now
    try:
        return min(datetime.fromtimestamp(milliseconds / 1000, UTC), now)
    except (ValueError, OverflowError, OSError, TypeError):
        raise BackendRejected(_INVALID_RESPONSE, detail="invalid time") from None

"""From what NerdGraph answers to samples; pure."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from adapter.backends.newrelic.errors import GraphError, of_error
from adapter.backends.newrelic.request import alias
from adapter.backends.newrelic.settings import NewRelicParameters
from adapter.errors import BackendError, BackendRejected, BadQuery
from adapter.sample import RawSample

Row: TypeAlias = dict[str, Any]
Samples: TypeAlias = tuple[RawSample, ...]
_NOT_NEW_RELIC: Final = "it answers, but not as New Relic does"
_FACET: Final = "facet"
_TIMES: Final = ("timestamp", "latest.timestamp")
_SERIES: Final = frozenset({"beginTimeSeconds", "comparison"})
"""What only rows of TIMESERIES and COMPARE WITH have."""


class Window(msgspec.Struct):
    """Of which time."""

    end: int | None = None


class Metadata(msgspec.Struct, rename={"time_window": "timeWindow"}):
    """What the rows are."""

    facets: list[str] | None = None
    time_window: Window | None = None


class Nrql(msgspec.Struct):
    """What one query found."""

    results: list[Row]
    metadata: Metadata


class Account(msgspec.Struct):
    """One question's answer; absent if it failed."""

    nrql: Nrql | None = None


class Data(msgspec.Struct):
    """All answers, by the names of their questions."""

    actor: dict[str, Account | None] | None = None


class Response(msgspec.Struct):
    """What was found, and what went wrong."""

    data: Data | None = None
    errors: list[GraphError] | None = None


def answers(body: bytes, asked: Sequence[NewRelicParameters], now: datetime) -> list[Samples | BackendError]:
    """Give each question its own series or its own error; raise if there is one for all."""
    try:
        said = msgspec.json.decode(body, type=Response)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected(_NOT_NEW_RELIC, detail=str(error)[:200]) from None
    names = {alias(number) for number in range(len(asked))}
    errors = said.errors or []
    own = {error.place(): error for error in reversed(errors) if error.place() in names}
    found = (said.data.actor if said.data is not None else None) or {}
    if not found and not own:
        common = [of_error(error) for error in errors]
        raise common[0] if common else BackendRejected(_NOT_NEW_RELIC, detail="no data")
    return [_answer(found.get(alias(number)), own.get(alias(number)), each, now) for number, each in enumerate(asked)]


def _answer(
    found: Account | None, error: GraphError | None, asked: NewRelicParameters, now: datetime
) -> Samples | BackendError:
    if found is None or found.nrql is None:
        return of_error(error) if error is not None else BackendRejected(_NOT_NEW_RELIC, detail="no data")
    try:
        return tuple(_sample(row, found.nrql.metadata, asked, now) for row in found.nrql.results)
    except BackendError as problem:
        return problem


def _sample(row: Row, metadata: Metadata, asked: NewRelicParameters, now: datetime) -> RawSample:
    if row.keys() & _SERIES:
        raise BadQuery("the query gives many numbers where one is wanted")
    facets = metadata.facets or []
    labels = _labels(row, facets)
    return RawSample(_number(row, facets, asked.value), _time(row, metadata, now), labels)


def _labels(row: Row, facets: Sequence[str]) -> dict[str, str]:
    """Give the groups that a row is of; each is under its own name, or together with the others in their order."""
    together = row.get(_FACET)
    listed = together if isinstance(together, list) else [together]
    found = {}
    for place, name in enumerate(facets):
        value = row.get(name, listed[place] if len(listed) == len(facets) else None)
        if value is not None:
            found[name] = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return found


def _number(row: Row, facets: Sequence[str], wanted: str) -> float:
    columns = [name for name in row if name not in {*facets, _FACET, *_TIMES}]
    if wanted and wanted not in row:
        raise BadQuery(f"the query has no column {wanted!r}", detail=f"columns: {', '.join(columns)[:200]}")
    if not wanted and len(columns) != 1:
        raise BadQuery("which column is the number? name it by value", detail=f"columns: {', '.join(columns)[:200]}")
    value = row[wanted or columns[0]]
    if isinstance(value, Mapping) and len(value) == 1:  # as of percentile(duration, 95): {"95": 0.2}
        (value,) = value.values()
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadQuery("the column with the number holds something else", detail=type(value).__name__)
    return _float(value)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _time(row: Row, metadata: Metadata, now: datetime) -> datetime:
    """Say of when a number is: of its event, or of the end of the time that was asked about, and never of later."""
    at = next((row[name] for name in _TIMES if row.get(name) is not None), None)
    if at is None and metadata.time_window is not None:
        at = metadata.time_window.end
    if at is None:
        return now
    try:
        return min(datetime.fromtimestamp(at / 1000, UTC), now)
    except (ValueError, OverflowError, OSError, TypeError):
        raise BackendRejected(_NOT_NEW_RELIC, detail="a time that is none") from None

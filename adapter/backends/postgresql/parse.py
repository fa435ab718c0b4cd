"""From the rows of a query to samples; pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Any, Final, NamedTuple
from uuid import UUID

from adapter.backends.postgresql.settings import PostgreSqlParameters
from adapter.errors import BadQuery
from adapter.sample import RawSample

_VALUE: Final = "value"
_PLAIN: Final = (
    *(str, int, float, Decimal, UUID, date, time, timedelta),
    *(IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network),
)
"""What can be written down as the value of a label."""


class Columns(NamedTuple):
    """Which column is what, by their places."""

    value: int
    at: int | None
    labels: Mapping[str, int]


def columns(names: Sequence[str], asked: PostgreSqlParameters) -> Columns:
    """Find the columns that a rule means; raise ``BadQuery`` if they are not there or could be several."""
    value = _place(names, asked.value) if asked.value else _number(names, asked)
    at = _place(names, asked.at) if asked.at else None
    wanted = asked.labels or tuple(name for place, name in enumerate(names) if place not in {value, at})
    return Columns(value, at, {name: _place(names, name) for name in wanted})


def samples(rows: Sequence[Sequence[Any]], where: Columns, now: datetime) -> Iterator[RawSample]:
    """Make a series of each row."""
    for row in rows:
        labels = {name: _text(row[place]) for name, place in where.labels.items() if row[place] is not None}
        yield RawSample(_float(row[where.value]), _time(row, where.at, now), labels)


def _number(names: Sequence[str], asked: PostgreSqlParameters) -> int:
    """Find the column with the number where the rule does not name it."""
    if _VALUE in names:
        return _place(names, _VALUE)
    left = [name for name in names if name not in asked.labels and name != asked.at]
    if len(left) != 1:
        raise BadQuery("which column is the number? call it value", detail=f"columns: {', '.join(names)[:200]}")
    return _place(names, left[0])


def _place(names: Sequence[str], name: str) -> int:
    match [place for place, each in enumerate(names) if each == name]:
        case [place]:
            return place
        case []:
            raise BadQuery(f"the query has no column {name!r}", detail=f"columns: {', '.join(names)[:200]}")
        case _:
            raise BadQuery(f"the query has several columns {name!r}")


def _float(found: object) -> float:
    if found is None:
        return math.nan
    if isinstance(found, bool) or not isinstance(found, int | float | Decimal):
        raise BadQuery("the column with the number holds something else", detail=type(found).__name__)
    return float(found)


def _text(found: object) -> str:
    if isinstance(found, bool):
        return "true" if found else "false"
    if not isinstance(found, _PLAIN):
        raise BadQuery("a label holds what is no text; cast it in the query", detail=type(found).__name__)
    return found.isoformat() if isinstance(found, date | time) else str(found)


def _time(row: Sequence[Any], place: int | None, now: datetime) -> datetime:
    found = row[place] if place is not None else None
    if found is None:
        return now
    if not isinstance(found, datetime):
        raise BadQuery("the column with the time holds something else", detail=type(found).__name__)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

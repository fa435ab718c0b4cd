"""Conversion of the rows of a query to samples. Pure code."""

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

_DEFAULT_VALUE_COLUMN: Final = "value"
_LABEL_TYPES: Final = (
    *(str, int, float, Decimal, UUID, date, time, timedelta),
    *(IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network),
)


class Columns(NamedTuple):
    """Positions of the columns with value, timestamp and labels."""

    value: int
    timestamp: int | None
    labels: Mapping[str, int]


def find_columns(names: Sequence[str], wanted: PostgreSqlParameters) -> Columns:
    """Return the positions of the columns of a rule; raise ``BadQuery`` if one is missing or ambiguous."""
    value = _position(names, wanted.value or _value_column(names, wanted))
    timestamp = _position(names, wanted.timestamp) if wanted.timestamp else None
    labels = wanted.labels or tuple(name for index, name in enumerate(names) if index not in {value, timestamp})
    return Columns(value, timestamp, {name: _position(names, name) for name in labels})


def samples(rows: Sequence[Sequence[Any]], columns: Columns, now: datetime) -> Iterator[RawSample]:
    """Yield a sample for each row; NULL labels are left out."""
    for row in rows:
        labels = {name: _text(row[index]) for name, index in columns.labels.items() if row[index] is not None}
        yield RawSample(_float(row[columns.value]), _timestamp(row, columns.timestamp, now), labels)


def _value_column(names: Sequence[str], wanted: PostgreSqlParameters) -> str:
    """Return the name of the value column if the rule does not set it."""
    if _DEFAULT_VALUE_COLUMN in names:
        return _DEFAULT_VALUE_COLUMN
    candidates = [name for name in names if name not in wanted.labels and name != wanted.timestamp]
    if len(candidates) != 1:
        raise BadQuery(
            "the value column is ambiguous: name it value, or set value", detail=f"columns: {', '.join(names)[:200]}"
        )
    return candidates[0]


def _position(names: Sequence[str], name: str) -> int:
    match [index for index, each in enumerate(names) if each == name]:
        case [index]:
            return index
        case []:
            raise BadQuery(f"the query returns no column {name!r}", detail=f"columns: {', '.join(names)[:200]}")
        case _:
            raise BadQuery(f"the query returns several columns {name!r}")


def _float(value: object) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise BadQuery("the value column is not numeric", detail=type(value).__name__)
    return float(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, _LABEL_TYPES):
        raise BadQuery(
            "a label column has an unsupported type: cast it to text in the query", detail=type(value).__name__
        )
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _timestamp(row: Sequence[Any], index: int | None, now: datetime) -> datetime:
    value = row[index] if index is not None else None
    if value is None:
        return now
    if not isinstance(value, datetime):
        raise BadQuery("the timestamp column is not a timestamp", detail=type(value).__name__)
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)

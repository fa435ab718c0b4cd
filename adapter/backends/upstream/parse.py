"""From an ``ExternalMetricValueList`` to samples; pure."""

from datetime import UTC, datetime, timedelta

import msgspec

from adapter.errors import BackendRejected
from adapter.sample import RawSample
from autoscaler.values.quantity import Quantity, QuantityError


class _Value(msgspec.Struct, frozen=True, rename="camel"):
    value: str | int
    timestamp: str | None = None
    metric_labels: dict[str, str] | None = None
    window_seconds: int | None = None


class _ValueList(msgspec.Struct, frozen=True):
    kind: str
    items: tuple[_Value, ...] | None = ()


def samples(body: bytes, now: datetime) -> tuple[RawSample, ...]:
    """Read an answer; raise ``BackendRejected`` if it is none."""
    try:
        listed = msgspec.json.decode(body, type=_ValueList)
    except msgspec.DecodeError as error:
        raise BackendRejected("it answers, but not with a list of values", detail=str(error)[:200]) from None
    if listed.kind != "ExternalMetricValueList":
        raise BackendRejected("it answers, but not with a list of values", detail=f"kind {listed.kind[:60]!r}")
    return tuple(_sample(item, now) for item in listed.items or ())


def _sample(item: _Value, now: datetime) -> RawSample:
    try:
        number = Quantity.parse(str(item.value)).to_float()
        at = now if item.timestamp is None else _time(item.timestamp)
    except (QuantityError, ValueError) as error:
        raise BackendRejected("what it answers is no number or no time", detail=str(error)[:200]) from None
    window = None if item.window_seconds is None else timedelta(seconds=item.window_seconds)
    return RawSample(number, at, item.metric_labels or {}, window)


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)

"""Conversion of an ``ExternalMetricValueList`` to samples. Pure code."""

from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from adapter.backends.connection.json_body import decode_body
from adapter.errors import BackendRejected
from adapter.sample import RawSample
from autoscaler.values.quantity import Quantity, QuantityError


class _Value(msgspec.Struct, frozen=True, rename="camel"):
    value: str | int
    timestamp: str | None = None
    metric_labels: dict[str, str] | None = None
    window_seconds: int | None = None


class _ValueList(msgspec.Struct, frozen=True):
    kind: Literal["ExternalMetricValueList"]
    items: tuple[_Value, ...] | None = ()


class _Status(msgspec.Struct, frozen=True):
    kind: Literal["Status"]
    message: str = ""


def samples(body: bytes, now: datetime) -> tuple[RawSample, ...]:
    """Return the samples of a response; raise ``BackendRejected`` if it has another format."""
    response = decode_body(body, _ValueList, "an external metrics server")
    return tuple(_sample(item, now) for item in response.items or ())


def status_message(body: bytes) -> str:
    """Return the message of a Kubernetes ``Status``; empty if the body is something else, as from a proxy."""
    try:
        return msgspec.json.decode(body, type=_Status).message[:300]
    except (msgspec.DecodeError, RecursionError):
        return ""


def _sample(item: _Value, now: datetime) -> RawSample:
    try:
        value = Quantity.parse(str(item.value)).to_float()
        timestamp = now if item.timestamp is None else _time(item.timestamp)
    except (QuantityError, ValueError) as error:
        raise BackendRejected("invalid value or timestamp", detail=str(error)[:200]) from None
    window = None if item.window_seconds is None else timedelta(seconds=item.window_seconds)
    return RawSample(value, timestamp, item.metric_labels or {}, window)


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)

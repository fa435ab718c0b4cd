"""Conversion of Prometheus' responses into samples. No I/O."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final, TypeAlias, TypeVar

import msgspec

from adapter.backends.connection import http_errors
from adapter.backends.prometheus import errors
from adapter.errors import Ambiguous, BackendError, BackendRejected, BadQuery
from adapter.rules.promql.sample_age import KIND_LABEL, TIMESTAMP_KIND
from adapter.sample import RawSample

Point: TypeAlias = tuple[float, str]
T = TypeVar("T")
_NAME: Final = "__name__"
_MAX_SIZE: Final = 1_500_000
"""Of a result: the number of labels and twice the number of series. Enough for 100,000 series with 12 labels. A short
label needs up to 165 bytes, twenty times its length in the response: ``maxResponseBytes`` alone is no memory limit."""

_MAX_TEXT_BYTES: Final = 256 * 1024
"""Of one series, or of all warnings, in the response."""


class VectorSeries(msgspec.Struct, gc=False):
    """One series of an instant vector."""

    metric: dict[str, str]
    value: Point | None = None
    histogram: msgspec.Raw = msgspec.Raw()

    @property
    def evaluated_at(self) -> float:
        """When the server evaluated the query, by the server's clock."""
        return self.value[0] if self.value is not None else 0.0


class Data(msgspec.Struct):
    """The result of a query; the shape of ``result`` depends on its type."""

    result_type: str = msgspec.field(name="resultType")
    result: msgspec.Raw


class ApiResponse(msgspec.Struct):
    """The body of a response of Prometheus' HTTP API."""

    status: str
    data: msgspec.Raw = msgspec.Raw()
    error_type: str = msgspec.field(name="errorType", default="")
    error: str = ""
    warnings: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def partial_warnings(self) -> tuple[str, ...]:
        """The warnings that the result may be partial; warnings about the expression itself are left out."""
        if len(memoryview(self.warnings)) > _MAX_TEXT_BYTES:
            raise _invalid("the warnings are too long")
        try:
            warnings = _decode_warnings(self.warnings) or ()
        except msgspec.DecodeError as error:
            raise _invalid(str(error)) from None
        return tuple(warning for warning in warnings if not warning.startswith("PromQL "))


_decode_response = msgspec.json.Decoder(ApiResponse).decode
_decode_data = msgspec.json.Decoder(Data).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_series = msgspec.json.Decoder(VectorSeries).decode
_decode_point = msgspec.json.Decoder(Point).decode
_decode_labels = msgspec.json.Decoder(dict[str, str]).decode
_decode_warnings = msgspec.json.Decoder(list[str] | None).decode


def decode(status: int, body: bytes) -> ApiResponse:
    """Decode a response; raise ``BackendError`` if it is an error or not one of Prometheus."""
    try:
        response = _decode_response(body)
    except (msgspec.DecodeError, RecursionError) as error:
        if status != HTTPStatus.OK:  # not all of these responses come from Prometheus itself
            raise http_errors.from_status(status, body) from None
        raise _invalid(str(error)) from None
    if status != HTTPStatus.OK or response.status == "error":
        raise errors.from_response(status, response.error_type, response.error)
    return response


def samples(response: ApiResponse, now: datetime) -> tuple[RawSample, ...]:
    """Return the samples of a query's response; ``now`` is when the query was sent, by this process' clock."""
    try:
        data = _decode_data(response.data)
        match data.result_type:
            case "vector":
                return tuple(_samples(_decode_list(data.result), now))
            case "scalar":
                return (RawSample(float(_decode_point(data.result)[1]), now),)
            case _:
                raise BadQuery(f"the result is a {data.result_type}, not a number for each series")
    except (msgspec.DecodeError, RecursionError, ValueError, OverflowError) as error:
        raise _invalid(str(error)) from None


def names(response: ApiResponse) -> frozenset[str]:
    try:
        label_sets = _decoded(_decode_list(response.data), _decode_labels)
        return frozenset(labels[_NAME] for labels in label_sets if _NAME in labels)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _invalid(str(error)) from None


def _samples(vector: list[msgspec.Raw], now: datetime) -> Iterator[RawSample]:
    """Return the samples of a vector. The series are decoded one by one: all at once need several times the memory."""
    timestamps = _timestamps(vector)
    common_timestamp = timestamps.get(_key({}))
    shared: dict[str, str] = {}  # most values of labels repeat, and the decoder creates a string for each
    size = unlabelled = 0
    for series in _decoded(vector, _decode_series):
        if series.metric.pop(KIND_LABEL, None) == TIMESTAMP_KIND:
            continue
        size += 2 + len(series.metric)
        if size > _MAX_SIZE:
            raise BackendRejected("the result has too many series and labels: aggregate series in the query")
        labels = {name: shared.setdefault(text, text) for name, text in series.metric.items()}
        unlabelled += not labels
        if unlabelled > 1:
            raise Ambiguous("two series have no labels: the response is invalid")
        timestamp = timestamps.get(_key(labels), common_timestamp) if timestamps else None
        # Both times are the server's, so a difference between its clock and this process' clock has no effect.
        age = max(series.evaluated_at - timestamp, 0.0) if timestamp is not None else 0.0
        yield RawSample(_number(series), now - timedelta(seconds=age) if age else now, labels)


def _decoded(items: list[msgspec.Raw], decode_item: Callable[[msgspec.Raw], T]) -> Iterator[T]:
    for item in items:
        if len(memoryview(item)) > _MAX_TEXT_BYTES:
            raise BackendRejected("the labels of a series are too long")
        yield decode_item(item)


def _timestamps(vector: list[msgspec.Raw]) -> dict[int, float]:
    """Return the timestamps of the series, by the key of their labels."""
    timestamps: dict[int, float] = {}
    for series in _decoded(vector, _decode_series):
        if series.metric.pop(KIND_LABEL, None) == TIMESTAMP_KIND:
            key, timestamp = _key(series.metric), _number(series)
            timestamps[key] = min(timestamp, timestamps.get(key, timestamp))
    return timestamps


def _key(labels: dict[str, str]) -> int:
    """Return a hash of the labels as ``timestamp()`` returns them: without the metric's name.

    The labels themselves would need more memory than the response. The hash has 64 bits and depends on a random seed.
    """
    return hash(frozenset(item for item in labels.items() if item[0] != _NAME))


def _number(series: VectorSeries) -> float:
    if series.value is None:
        raise BadQuery("the result is a native histogram, not a number for each series")
    return float(series.value[1])


def _invalid(detail: str) -> BackendError:
    return BackendRejected("invalid response from the Prometheus HTTP API", detail=detail[:200])


def partial_result_error(warnings: Iterable[str]) -> BackendError:
    return BackendRejected("the result may be partial: the response has warnings", detail="; ".join(warnings)[:500])

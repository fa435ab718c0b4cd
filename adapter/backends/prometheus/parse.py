"""Conversion of Prometheus' responses into samples. No I/O.

A response is decoded in parts of some hundred series: one call of the decoder for a response of many megabytes would
hold the lock of the interpreter, and so block the event loop, and would need several times the memory.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec

from adapter.backends.connection import http_errors
from adapter.backends.prometheus import errors
from adapter.backends.prometheus.vector import MAX_TEXT_BYTES, NAME, Point, Row, VectorParser
from adapter.errors import BackendError, BackendRejected, BadQuery
from adapter.label_sets import LabelSets
from adapter.series_table import SeriesTable

T = TypeVar("T")
_RESULT: Final = b'"result":['
_BOUNDARY: Final = b']},{"metric":{'
"""Between two series. No string in JSON contains a quotation mark without a backslash, so it is nowhere else."""

_PART_BYTES: Final = 128 * 1024


class Data(msgspec.Struct):
    """The result of a query; the shape of ``result`` depends on its type."""

    result_type: str = msgspec.field(name="resultType")
    result: msgspec.Raw


class Envelope(msgspec.Struct):
    """The body of a response of Prometheus' HTTP API."""

    status: str
    data: msgspec.Raw = msgspec.Raw()
    error_type: str = msgspec.field(name="errorType", default="")
    error: str = ""
    warnings: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A response of Prometheus' HTTP API."""

    envelope: Envelope
    """The body without ``parts``."""

    parts: tuple[memoryview, ...] = ()
    """The first series of a large result: parts of the body, each a list of series without its brackets."""

    @property
    def partial_warnings(self) -> tuple[str, ...]:
        """The warnings that the result may be partial; warnings about the expression itself are left out."""
        if len(memoryview(self.envelope.warnings)) > MAX_TEXT_BYTES:
            raise _invalid("the warnings are too long")
        try:
            warnings = _decode_warnings(self.envelope.warnings) or ()
        except msgspec.DecodeError as error:
            raise _invalid(str(error)) from None
        return tuple(warning for warning in warnings if not warning.startswith("PromQL "))


_decode_envelope = msgspec.json.Decoder(Envelope).decode
_decode_data = msgspec.json.Decoder(Data).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_rows = msgspec.json.Decoder(list[Row]).decode
_decode_row = msgspec.json.Decoder(Row).decode
_decode_point = msgspec.json.Decoder(Point).decode
_decode_labels = msgspec.json.Decoder(dict[str, str]).decode
_decode_warnings = msgspec.json.Decoder(list[str] | None).decode


def decode(status: int, body: bytes) -> ApiResponse:
    """Decode a response; raise ``BackendError`` if it is an error or not one of Prometheus."""
    parts, rest = _split(body)
    try:
        envelope = _decode_envelope(rest)
    except (msgspec.DecodeError, RecursionError) as error:
        if status != HTTPStatus.OK:  # not all of these responses come from Prometheus itself
            raise http_errors.from_status(status, body) from None
        raise _invalid(str(error)) from None
    if status != HTTPStatus.OK or envelope.status == "error":
        raise errors.from_response(status, envelope.error_type, envelope.error)
    return ApiResponse(envelope, parts)


def samples(response: ApiResponse, now: datetime, previous: LabelSets | None = None) -> SeriesTable:
    """Return the samples of a query's response; ``now`` is when the query was sent, by this process' clock.

    ``previous`` are the label sets of the last response to the same query.
    """
    try:
        data = _decode_data(response.envelope.data)
        match data.result_type:
            case "vector":
                return _vector(response.parts, data.result, VectorParser(previous), now)
            case "scalar":
                value = array("d", [float(_decode_point(data.result)[1])])
                return SeriesTable(LabelSets([{}]), value, now)
            case _:
                raise BadQuery(f"the result is a {data.result_type}, not a number for each series")
    except (msgspec.DecodeError, RecursionError, ValueError, OverflowError) as error:
        raise _invalid(str(error)) from None


def names(response: ApiResponse) -> frozenset[str]:
    try:
        label_sets = _decoded(_decode_list(response.envelope.data), _decode_labels)
        return frozenset(labels[NAME] for labels in label_sets if NAME in labels)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _invalid(str(error)) from None


def _split(body: bytes) -> tuple[tuple[memoryview, ...], bytes]:
    """Split the series of a large result off a body; return them in parts, and the body without them."""
    if len(body) < 2 * _PART_BYTES or (start := body.find(_RESULT, 0, _PART_BYTES)) < 0:
        return (), body
    start += len(_RESULT)
    view, parts, end = memoryview(body), [], start
    while (boundary := body.find(_BOUNDARY, end + _PART_BYTES)) >= 0:
        after = boundary + len(b"]}")
        parts.append(view[end:after])
        end = after + len(b",")
    return tuple(parts), body[:start] + body[end:] if parts else body


def _vector(parts: Iterable[memoryview], rest: msgspec.Raw, parser: VectorParser, now: datetime) -> SeriesTable:
    for part in parts:
        parser.add(_decode_rows(b"".join((b"[", part, b"]"))))
    if len(memoryview(rest)) <= 2 * _PART_BYTES:
        parser.add(_decode_rows(rest))
    else:  # a server that formats JSON differently, or a very long series
        for row in _decoded(_decode_list(rest), _decode_row):
            parser.add([row])
    return parser.table(now)


def _decoded(items: list[msgspec.Raw], decode_item: Callable[[msgspec.Raw], T]) -> Iterator[T]:
    for item in items:
        if len(memoryview(item)) > MAX_TEXT_BYTES:
            raise BackendRejected("the labels of a series are too long")
        yield decode_item(item)


def _invalid(detail: str) -> BackendError:
    return BackendRejected("invalid response from the Prometheus HTTP API", detail=detail[:200])


def partial_result_error(warnings: Iterable[str]) -> BackendError:
    return BackendRejected("the result may be partial: the response has warnings", detail="; ".join(warnings)[:500])

"""Subjects and responses of the JetStream API, and conversion of the responses to samples. Pure code."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias, TypeVar

import msgspec

from adapter.backends.nats.errors import PERMISSION_DENIED, UNEXPECTED
from adapter.backends.nats.settings import NatsParameters
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized
from adapter.sample import RawSample

_NOT_FOUND: Final = frozenset({10014, 10059})  # error codes for a consumer and a stream that do not exist
_NOT_ENABLED: Final = frozenset({10035, 10039, 10076})


class JetStreamError(msgspec.Struct, frozen=True):
    """The error of a failed API request."""

    code: int = 0
    err_code: int = 0
    description: str = ""


class StreamConfig(msgspec.Struct, frozen=True):
    """The configuration of a stream, of which only the name is used."""

    name: str


class StreamState(msgspec.Struct, frozen=True):
    """The state of a stream."""

    messages: float = math.nan


class Stream(msgspec.Struct, frozen=True):
    """Information about a stream."""

    config: StreamConfig
    state: StreamState = StreamState()


class Consumer(msgspec.Struct, frozen=True):
    """Information about a consumer."""

    name: str
    stream_name: str
    num_pending: float = math.nan
    num_ack_pending: float = math.nan


class ListPage(msgspec.Struct, frozen=True):
    """A page of streams or consumers; ``missing`` names those whose servers do not respond."""

    total: int
    streams: list[Stream] | None = None
    consumers: list[Consumer] | None = None
    missing: list[str] | None = None

    @property
    def size(self) -> int:
        return sum(len(each or ()) for each in (self.streams, self.consumers, self.missing))


class _ErrorResponse(msgspec.Struct, frozen=True):
    error: JetStreamError | None = None


ApiResponse: TypeAlias = Stream | Consumer | ListPage
R = TypeVar("R", bound=ApiResponse)


def api_request(wanted: NatsParameters) -> tuple[str, type[Stream] | type[Consumer] | type[ListPage]]:
    """Return the subject of the API request, without the API prefix, and the type of the response."""
    if wanted.measure == "messages":
        return (f"STREAM.INFO.{wanted.stream}", Stream) if wanted.stream else ("STREAM.LIST", ListPage)
    if wanted.consumer:
        return f"CONSUMER.INFO.{wanted.stream}.{wanted.consumer}", Consumer
    return f"CONSUMER.LIST.{wanted.stream}", ListPage


def decode_response(body: bytes, expected: type[R]) -> R | None:
    """Decode a response; None if the stream or consumer does not exist. Raise ``BackendError`` for other errors."""
    try:
        error = msgspec.json.decode(body, type=_ErrorResponse).error
        if error is None:
            return msgspec.json.decode(body, type=expected)
    except (msgspec.DecodeError, RecursionError) as invalid:
        raise BackendRejected(UNEXPECTED, detail=str(invalid)[:200]) from None
    if error.err_code in _NOT_FOUND:
        return None
    raise _from_api_error(error)


def samples(wanted: NatsParameters, responses: Sequence[ApiResponse], now: datetime) -> Iterator[RawSample]:
    """Yield a sample for each stream or consumer; an unknown value is NaN."""
    seen = set()
    for labels, value in (pair for response in responses for pair in _values(wanted, response)):
        if (key := tuple(labels.values())) not in seen:  # an entry can move to the next page between two requests
            seen.add(key)
            yield RawSample(value, now, labels)


def _values(wanted: NatsParameters, response: ApiResponse) -> Iterator[tuple[dict[str, str], float]]:
    match response:
        case Stream():
            yield {"stream": response.config.name}, response.state.messages
        case Consumer():
            yield {"stream": response.stream_name, "consumer": response.name}, _BACKLOG[wanted.measure](response)
        case ListPage():
            for entry in (*(response.streams or ()), *(response.consumers or ())):
                yield from _values(wanted, entry)
            for name in response.missing or ():
                labels = {"stream": wanted.stream, "consumer": name} if wanted.stream else {"stream": name}
                yield labels, math.nan


_BACKLOG: Final[Mapping[str, Callable[[Consumer], float]]] = {
    "pending": lambda consumer: consumer.num_pending,
    "ackPending": lambda consumer: consumer.num_ack_pending,
    "lag": lambda consumer: consumer.num_pending + consumer.num_ack_pending,
}


def _from_api_error(error: JetStreamError) -> BackendError:
    detail = f"{error.code} {error.description} ({error.err_code})"[:300]
    if error.err_code in _NOT_ENABLED:
        return BackendRejected("JetStream is not enabled for this account", detail=detail)
    if error.code in {401, 403}:
        return BackendUnauthorized(PERMISSION_DENIED, detail=detail)
    return BackendRejected("the JetStream API returned an error", detail=detail)

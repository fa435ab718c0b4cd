"""What JetStream's API is asked, and from what it says to samples; pure."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, TypeAlias, TypeVar

import msgspec

from adapter.backends.nats.settings import NatsParameters
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized
from adapter.sample import RawSample

_NOT_FOUND: Final = frozenset({10014, 10059})
"""No such consumer, no such stream."""

_NOT_ENABLED: Final = frozenset({10035, 10039, 10076})


class Refusal(msgspec.Struct, frozen=True):
    """Why not."""

    code: int = 0
    err_code: int = 0
    description: str = ""


class Named(msgspec.Struct, frozen=True):
    """A stream's configuration, of which only the name matters."""

    name: str


class State(msgspec.Struct, frozen=True):
    """What a stream holds."""

    messages: float = math.nan


class Stream(msgspec.Struct, frozen=True):
    """One stream."""

    config: Named
    state: State = State()


class Consumer(msgspec.Struct, frozen=True):
    """One consumer."""

    name: str
    stream_name: str
    num_pending: float = math.nan
    num_ack_pending: float = math.nan


class Page(msgspec.Struct, frozen=True):
    """Some of the streams or consumers; those whose servers do not answer are only named."""

    total: int
    streams: list[Stream] | None = None
    consumers: list[Consumer] | None = None
    missing: list[str] | None = None

    @property
    def size(self) -> int:
        """Say how many are on it."""
        return sum(len(each or ()) for each in (self.streams, self.consumers, self.missing))


class _Failed(msgspec.Struct, frozen=True):
    error: Refusal | None = None


Found: TypeAlias = Stream | Consumer | Page
F = TypeVar("F", bound=Found)


def subject(asked: NatsParameters) -> str:
    """Say what is asked, below the prefix of the API."""
    if asked.reads == "messages":
        return f"STREAM.INFO.{asked.stream}" if asked.stream else "STREAM.LIST"
    return f"CONSUMER.INFO.{asked.stream}.{asked.consumer}" if asked.consumer else f"CONSUMER.LIST.{asked.stream}"


def shape(asked: NatsParameters) -> type[Stream] | type[Consumer] | type[Page]:
    """Say what is answered."""
    if asked.reads == "messages":
        return Stream if asked.stream else Page
    return Consumer if asked.consumer else Page


def decoded(body: bytes, of: type[F]) -> F | None:
    """Read an answer; None if there is no such thing. Raise if it is an error or none of JetStream's."""
    try:
        failed = msgspec.json.decode(body, type=_Failed).error
        if failed is None:
            return msgspec.json.decode(body, type=of)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected("it answers, but not as JetStream does", detail=str(error)[:200]) from None
    if failed.err_code in _NOT_FOUND:
        return None
    raise _refused(failed)


def samples(asked: NatsParameters, found: Sequence[Found], now: datetime) -> Iterator[RawSample]:
    """Make a series of each. A number that is not known is none: NaN, and never zero."""
    seen = set()
    for labels, number in (pair for each in found for pair in _numbers(asked, each)):
        if (key := tuple(labels.values())) not in seen:  # one can move from one page to the next while we read
            seen.add(key)
            yield RawSample(number, now, labels)


def _numbers(asked: NatsParameters, found: Found) -> Iterator[tuple[dict[str, str], float]]:
    match found:
        case Stream():
            yield {"stream": found.config.name}, found.state.messages
        case Consumer():
            yield {"stream": found.stream_name, "consumer": found.name}, _of_consumer(asked.reads, found)
        case Page():
            for each in (*(found.streams or ()), *(found.consumers or ())):
                yield from _numbers(asked, each)
            for name in found.missing or ():
                of_stream = {"stream": asked.stream, "consumer": name} if asked.stream else {"stream": name}
                yield of_stream, math.nan


def _of_consumer(reads: str, consumer: Consumer) -> float:
    match reads:
        case "pending":
            return consumer.num_pending
        case "ackPending":
            return consumer.num_ack_pending
        case _:
            return consumer.num_pending + consumer.num_ack_pending


def _refused(why: Refusal) -> BackendError:
    detail = f"{why.code} {why.description} ({why.err_code})"[:300]
    if why.err_code in _NOT_ENABLED:
        return BackendRejected("JetStream is not enabled for this account", detail=detail)
    if why.code in {401, 403}:
        return BackendUnauthorized("the user may not ask that", detail=detail)
    return BackendRejected("JetStream answers with an error", detail=detail)

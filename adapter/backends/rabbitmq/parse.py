"""From what the management API says of queues to samples; pure."""

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from adapter.errors import BackendRejected
from adapter.sample import RawSample

T = TypeVar("T")


class Rate(msgspec.Struct, frozen=True):
    """How many a second."""

    rate: float = 0.0


class MessageStats(msgspec.Struct, frozen=True):
    """What passed through a queue; absent where nothing ever did."""

    publish_details: Rate = Rate()
    deliver_get_details: Rate = Rate()


class Queue(msgspec.Struct):
    """One queue. A number that RabbitMQ does not know, as of a queue that is new or whose node is down, is absent."""

    name: str
    vhost: str
    messages: float = math.nan
    messages_ready: float = math.nan
    messages_unacknowledged: float = math.nan
    message_stats: MessageStats | None = None


class Page(msgspec.Struct):
    """Some of the queues."""

    items: list[Queue]
    page_count: int


class Refusal(msgspec.Struct):
    """Why not."""

    error: str
    reason: str = ""


COLUMNS: Final = (
    "name,vhost,messages,messages_ready,messages_unacknowledged,"
    "message_stats.publish_details.rate,message_stats.deliver_get_details.rate"
)
"""All that is wanted of what RabbitMQ knows about a queue, which is some two kilobytes."""


def decoded(body: bytes, shape: type[T]) -> T:
    """Read an answer; raise ``BackendRejected`` if it is none of RabbitMQ's."""
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected("it answers, but not as RabbitMQ does", detail=str(error)[:200]) from None


def is_refused_for(error: str, body: bytes) -> bool:
    """Say whether an answer is RabbitMQ's own with this error; a proxy's may have the same status."""
    try:
        return msgspec.json.decode(body, type=Refusal).error == error
    except (msgspec.DecodeError, RecursionError):
        return False


def samples(queues: Iterable[Queue], reads: str, now: datetime) -> Iterator[RawSample]:
    """Make a series of each queue. A number that is not known is none: NaN, and never zero."""
    seen = set()
    for queue in queues:
        if (queue.vhost, queue.name) not in seen:  # a queue can move from one page to the next while we read
            seen.add((queue.vhost, queue.name))
            yield RawSample(_number(queue, reads), now, {"vhost": queue.vhost, "queue": queue.name})


def _number(queue: Queue, reads: str) -> float:
    passed = queue.message_stats or MessageStats()
    match reads:
        case "messages":
            return queue.messages
        case "ready":
            return queue.messages_ready
        case "unacknowledged":
            return queue.messages_unacknowledged
        case "publishRate":
            return passed.publish_details.rate
        case _:
            return passed.deliver_get_details.rate

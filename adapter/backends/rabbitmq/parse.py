"""Responses of the RabbitMQ management API, and their conversion to samples. Pure code."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec

from adapter.sample import RawSample


class Rate(msgspec.Struct, frozen=True):
    """A message rate per second."""

    rate: float = 0.0


class MessageStats(msgspec.Struct, frozen=True):
    """The message rates of a queue; absent if the queue never had a message."""

    publish_details: Rate = Rate()
    deliver_get_details: Rate = Rate()


class Queue(msgspec.Struct):
    """A queue. Counts that RabbitMQ does not know, for example while a node is down, are absent."""

    name: str
    vhost: str
    messages: float = math.nan
    messages_ready: float = math.nan
    messages_unacknowledged: float = math.nan
    message_stats: MessageStats | None = None


class QueuePage(msgspec.Struct):
    """A page of queues."""

    items: list[Queue]
    page_count: int


class ErrorResponse(msgspec.Struct):
    """An error of the management API."""

    error: str
    reason: str = ""


COLUMNS: Final = (
    "name,vhost,messages,messages_ready,messages_unacknowledged,"
    "message_stats.publish_details.rate,message_stats.deliver_get_details.rate"
)
"""The fields to return; all fields of a queue would be about two kilobytes."""


def has_error(error: str, body: bytes) -> bool:
    """Return whether a response is this error of RabbitMQ; a proxy may respond with the same status."""
    try:
        return msgspec.json.decode(body, type=ErrorResponse).error == error
    except (msgspec.DecodeError, RecursionError):
        return False


def samples(queues: Iterable[Queue], measure: str, now: datetime) -> Iterator[RawSample]:
    """Yield a sample for each queue; an unknown value is NaN."""
    seen = set()
    for queue in queues:
        if (queue.vhost, queue.name) not in seen:  # a queue can move to the next page between two requests
            seen.add((queue.vhost, queue.name))
            yield RawSample(_MEASURES[measure](queue), now, {"vhost": queue.vhost, "queue": queue.name})


_MEASURES: Final[Mapping[str, Callable[[Queue], float]]] = {
    "messages": lambda queue: queue.messages,
    "ready": lambda queue: queue.messages_ready,
    "unacknowledged": lambda queue: queue.messages_unacknowledged,
    "publishRate": lambda queue: (queue.message_stats or MessageStats()).publish_details.rate,
    "deliverRate": lambda queue: (queue.message_stats or MessageStats()).deliver_get_details.rate,
}

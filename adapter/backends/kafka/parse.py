"""What Kafka is asked, and what its answers say: topics, offsets, ends; pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest

from adapter.backends.connection.address import Address
from adapter.backends.kafka.errors import of_code
from adapter.errors import BackendRejected

END: Final = -1
BEGINNING: Final = -2
_NO_SUCH_TOPIC: Final = 3
_MOVING: Final = frozenset({3, 5, 6, 9, 72, 74, 75, 76, 78})
"""The partition has no leader now, or another than a moment ago: nobody knows its number."""

_OF_GROUPS: Final = 0


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Layout(NamedTuple):
    """Who leads which partition; None: nobody does."""

    leaders: Mapping[Place, Address | None]


def about_topics(topics: Iterable[str]) -> MetadataRequest:
    """Ask who leads; and never make a topic by asking for it."""
    return MetadataRequest(sorted(set(topics)), allow_auto_topic_creation=False)


def about_coordinator(group: str) -> FindCoordinatorRequest:
    """Ask who knows a group's offsets."""
    return FindCoordinatorRequest(group, _OF_GROUPS)


def about_offsets(group: str) -> OffsetFetchRequest:
    """Ask for all that a group committed."""
    return OffsetFetchRequest(group, None)


def about_ends(places: Iterable[Place], which: int) -> OffsetRequest:
    """Ask where partitions end, or begin."""
    topics: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place in places:
        topics[place.topic].append((place.partition, which))
    return OffsetRequest(-1, 0, list(topics.items()))


def layout(said: Any, topics: Iterable[str]) -> Layout:  # noqa: ANN401 - the library's answers have no types
    """Read who leads; topics that do not exist are left out."""
    brokers = {broker[0]: Address(broker[1], broker[2]) for broker in said.brokers}
    leaders: dict[Place, Address | None] = {}
    wanted = set(topics)
    for code, topic, _, partitions in said.topics:
        if code == _NO_SUCH_TOPIC or topic not in wanted:
            continue
        if code:
            raise of_code(code)
        for _, partition, leader, *_ in partitions:
            leaders[Place(topic, partition)] = brokers.get(leader)
    return Layout(leaders)


def coordinator(said: Any) -> Address:  # noqa: ANN401
    """Read who knows a group's offsets."""
    if said.error_code:
        raise of_code(said.error_code)
    return Address(said.host, said.port)


def offsets(said: Any) -> dict[Place, int]:  # noqa: ANN401
    """Read what a group committed; -1 is what it did not."""
    if said.error_code:
        raise of_code(said.error_code)
    found: dict[Place, int] = {}
    for topic, partitions in said.topics:
        for partition, offset, _, code in partitions:
            if code not in {0, _NO_SUCH_TOPIC}:
                raise of_code(code)
            if not code and offset >= 0:
                found[Place(topic, partition)] = offset
    return found


def ends(said: Any) -> dict[Place, int]:  # noqa: ANN401
    """Read where partitions end; what is not known now is left out."""
    found: dict[Place, int] = {}
    for topic, partitions in said.topics:
        for partition, code, _, offset, *_ in partitions:
            if code and code not in _MOVING:
                raise of_code(code)
            if not code:
                if offset < 0:
                    raise BackendRejected("it answers, but not as Kafka does")
                found[Place(topic, partition)] = offset
    return found

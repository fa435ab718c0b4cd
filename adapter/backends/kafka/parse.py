"""Requests to Kafka brokers, and parsing of the responses. Pure code."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest

from adapter.backends.connection.address import Address
from adapter.backends.kafka.errors import UNEXPECTED, from_code
from adapter.errors import BackendRejected

LATEST: Final = -1
EARLIEST: Final = -2
_UNKNOWN_TOPIC: Final = 3
_NO_LEADER: Final = frozenset({3, 5, 6, 9, 72, 74, 75, 76, 78})
"""Error codes of a partition that has no leader or whose leader changed: its offset is unknown for now."""


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int


Leaders: TypeAlias = Mapping[Partition, Address | None]  # leaders of partitions; None: the partition has no leader


def metadata_request(topics: Iterable[str]) -> MetadataRequest:
    """Return the request for the brokers and partition leaders, without automatic creation of topics."""
    return MetadataRequest(sorted(set(topics)), allow_auto_topic_creation=False)


def log_offsets_request(partitions: Iterable[Partition], which: int) -> OffsetRequest:
    """Return the request for the ``LATEST`` or ``EARLIEST`` offsets of partitions."""
    topics: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for partition in partitions:
        topics[partition.topic].append((partition.number, which))
    return OffsetRequest(-1, 0, list(topics.items()))


def raise_error_code(response: Any) -> None:  # noqa: ANN401 - aiokafka's responses have no types
    if response.error_code:
        raise from_code(response.error_code)


def parse_leaders(response: Any, topics: Iterable[str]) -> Leaders:  # noqa: ANN401
    """Return the leaders of the partitions of these topics; topics that do not exist are left out."""
    brokers = {broker[0]: Address(broker[1], broker[2]) for broker in response.brokers}
    leaders: dict[Partition, Address | None] = {}
    wanted = set(topics)
    for code, topic, _, partitions in response.topics:
        if code == _UNKNOWN_TOPIC or topic not in wanted:
            continue
        if code:
            raise from_code(code)
        for _, number, leader, *_ in partitions:
            leaders[Partition(topic, number)] = brokers.get(leader)
    return leaders


def parse_committed_offsets(response: Any) -> dict[Partition, int]:  # noqa: ANN401
    """Return the committed offsets; Kafka sends -1 for a partition without one."""
    raise_error_code(response)
    offsets: dict[Partition, int] = {}
    for topic, partitions in response.topics:
        for number, offset, _, code in partitions:
            if code not in {0, _UNKNOWN_TOPIC}:
                raise from_code(code)
            if not code and offset >= 0:
                offsets[Partition(topic, number)] = offset
    return offsets


def parse_log_offsets(response: Any) -> dict[Partition, int]:  # noqa: ANN401
    """Return the first or last offsets; partitions without a leader are left out."""
    offsets: dict[Partition, int] = {}
    for topic, partitions in response.topics:
        for number, code, _, offset, *_ in partitions:
            if code and code not in _NO_LEADER:
                raise from_code(code)
            if not code:
                if offset < 0:
                    raise BackendRejected(UNEXPECTED, detail=f"offset {offset}")
                offsets[Partition(topic, number)] = offset
    return offsets

"""Settings of the Kafka backend and the parameters of its rules."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, ClassVar, Final, Literal

import msgspec

from adapter.backends.connection.address import address_problems
from adapter.backends.settings import BackendSettings, CircuitBreakerSettings, Parameters, Tls, connection_problems
from adapter.decoding.problem import Problem
from autoscaler.types.record import Record

PORT: Final = 9092
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)


class KafkaParameters(Parameters, frozen=True):
    """A consumer group, its topics, and how its lag is computed."""

    selecting: ClassVar[tuple[str, ...]] = ("group", "topics", "partitions")

    group: str
    """Name of the consumer group."""

    topics: Annotated[tuple[str, ...], msgspec.Meta(max_length=256)] = ()
    """Names of topics. Default: all topics in which the group has committed an offset."""

    partitions: str = ""
    """Partition numbers and ranges, such as ``0-3,7``. Default: all."""

    series: Literal["topic", "partition", "group"] = "topic"
    """Granularity of the series: the lag per topic, per partition, or of the group in all topics."""

    offset_reset: Literal["latest", "earliest"] = "latest"
    """The ``auto.offset.reset`` of the consumers, for partitions in which the group has no committed offset. With
    ``earliest``, the whole partition counts as lag. With ``latest``, the lag is unknown and counts as 1 unless the
    partition never had a message, so that a consumer is started and commits an offset."""

    zero_without_offset: bool = False
    """Count partitions without a committed offset as 0, regardless of ``offsetReset``. No consumer is started until an
    offset is committed."""

    lag_per_consumer: int = 0
    """The target lag per consumer, as in the target of the autoscaler. If it is set, a series is at most this value
    times the number of partitions, because additional consumers would be idle. 0: no limit."""

    limit_to_partitions_with_lag: bool = False
    """With ``lagPerConsumer``: count only partitions with lag for the limit."""

    stuck_after: timedelta = timedelta()
    """If the committed offset of a partition with lag has not changed for this long, the partition counts as 1: more
    consumers would not help, but one should run. 0: disabled."""

    def problems(self, path: str) -> Iterator[Problem]:
        if not self.group:
            yield Problem(f"{path}.group", "must not be empty")
        for number, topic in enumerate(self.topics):
            if not _TOPIC.fullmatch(topic) or topic in {".", ".."}:
                yield Problem(f"{path}.topics[{number}]", "must be a topic name of letters, digits, dots, - and _")
        if self.partitions and parse_ranges(self.partitions) is None:
            yield Problem(f"{path}.partitions", "must be numbers and ranges, such as 0-3,7")
        if self.lag_per_consumer < 0:
            yield Problem(f"{path}.lagPerConsumer", "must not be negative", value=self.lag_per_consumer)
        if self.limit_to_partitions_with_lag and not self.lag_per_consumer:
            yield Problem(f"{path}.limitToPartitionsWithLag", "requires lagPerConsumer")


def parse_ranges(text: str) -> tuple[range, ...] | None:
    """Parse numbers and ranges; None if the text is invalid."""
    matches = [_RANGE.fullmatch(part.strip()) for part in text.split(",")]
    ranges = tuple(range(int(each[1]), int(each[2] or each[1]) + 1) for each in matches if each is not None)
    return ranges if len(ranges) == len(matches) and all(ranges) else None


class KafkaSasl(Record, frozen=True):
    """SASL authentication."""

    username: str
    """User name."""

    password_file: str
    """File with the password, read at every connection, so that the password can be rotated."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    """SASL mechanism. ``PLAIN`` sends the password itself, so use it with ``tls`` only. The default is the strongest
    one."""


class Kafka(BackendSettings, frozen=True):
    """A Kafka cluster."""

    backend_class: ClassVar[str] = "adapter.backends.kafka.backend:KafkaBackend"
    required_modules: ClassVar[tuple[str, ...]] = ("aiokafka",)
    extra: ClassVar[str] = "kafka"
    parameters_type: ClassVar[type[Parameters] | None] = KafkaParameters
    has_adaptive_interval: ClassVar[bool] = True
    labels_controlled_by_rules: ClassVar[bool] = True  # the name of a group does not identify its owner

    bootstrap_servers: tuple[str, ...]
    """Addresses of some brokers as ``host:port``, tried in order. The other brokers are discovered from them. Default
    port: 9092."""

    sasl: KafkaSasl | None = None
    tls: Tls | None = None
    """Set, even to ``{}``: connections use TLS."""

    circuit_breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    def problems(self, path: str) -> Iterator[Problem]:
        yield from address_problems(self.bootstrap_servers, f"{path}.bootstrapServers")
        if self.sasl is not None and not self.sasl.username:
            yield Problem(f"{path}.sasl.username", "must not be empty")
        if self.sasl is not None and not self.sasl.password_file:
            yield Problem(f"{path}.sasl.passwordFile", "must not be empty")
        if self.tls is not None and self.tls.server_name:
            yield Problem(f"{path}.tls.serverName", "cannot be set: each broker is verified with its own host name")
        yield from connection_problems(self.tls, self.circuit_breaker, {}, path)

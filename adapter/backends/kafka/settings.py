"""Which Kafka, and which consumer group on which of its topics."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Final, Literal

from adapter.backends.connection.address import address_problems
from adapter.backends.settings import (
    BackendSettings,
    CircuitBreakerSettings,
    Parameters,
    Tls,
    at_least_one,
    tls_problems,
)
from autoscaler.types.record import Record

PORT: Final = 9092
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)


class KafkaParameters(Parameters, frozen=True):
    """Which group, on which topics, and how its lag is counted."""

    group: str
    """The consumer group."""

    topics: tuple[str, ...] = ()
    """Which topics. Left out: all in which the group has committed an offset."""

    partitions: str = ""
    """Which partitions, such as ``0-3,7``. Left out: all."""

    series: Literal["topic", "partition", "group"] = "topic"
    """What a series is: the lag in a topic, in a partition, or of the group in all of them together."""

    offset_reset: Literal["latest", "earliest"] = "latest"
    """Where consumers begin in a partition in which the group has no committed offset, their ``auto.offset.reset``.
    With ``earliest`` all that is in it is lag. With ``latest`` nobody knows: it counts as 1, unless nothing was ever
    written to it, so that somebody begins, and commits."""

    zero_without_offset: bool = False
    """Count such partitions as 0 instead, whatever ``offsetReset`` says: none is started until one has committed."""

    lag_per_consumer: int = 0
    """The lag that one consumer shall have, as the autoscaler's target says. Set: no series is larger than what as many
    consumers as there are partitions would have, because more would be idle."""

    limit_to_partitions_with_lag: bool = False
    """With ``lagPerConsumer``: as many consumers as there are partitions in which anything is to do."""

    stuck_after: timedelta = timedelta()
    """Set: a partition in which the committed offset has not moved for so long, though there is something to do, counts
    as 1: more consumers would not help it, but one should be there."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        if not self.group:
            yield f"{at}.group: must not be empty"
        for number, topic in enumerate(self.topics):
            if not _TOPIC.fullmatch(topic) or topic in {".", ".."}:
                yield f"{at}.topics[{number}]: cannot be a topic; those have letters, digits, dots, - and _"
        if self.partitions and ranges(self.partitions) is None:
            yield f"{at}.partitions: must be numbers and ranges, such as 0-3,7"
        if self.lag_per_consumer < 0:
            yield f"{at}.lagPerConsumer: must not be negative, is {self.lag_per_consumer}"
        if self.limit_to_partitions_with_lag and not self.lag_per_consumer:
            yield f"{at}.limitToPartitionsWithLag: needs lagPerConsumer"


def ranges(text: str) -> tuple[range, ...] | None:
    """Read numbers and ranges; None if they are none."""
    found = [_RANGE.fullmatch(part.strip()) for part in text.split(",")]
    whole = [match for match in found if match is not None]
    made = tuple(range(int(match[1]), int(match[2] or match[1]) + 1) for match in whole)
    return made if len(whole) == len(found) and all(made) else None


class KafkaSasl(Record, frozen=True):
    """Who we are, by SASL."""

    username: str
    """Whom to say we are."""

    password_file: str
    """Read at every connection, so that the password can be changed."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    """How the password is shown; PLAIN shows it as it is, so encrypt."""


class Kafka(BackendSettings, frozen=True):
    """A Kafka cluster."""

    opened_by: ClassVar[str] = "adapter.backends.kafka.backend:KafkaBackend"
    library: ClassVar[tuple[str, ...]] = ("aiokafka",)
    extra: ClassVar[str] = "kafka"
    asked_with: ClassVar[type[Parameters] | None] = KafkaParameters
    rules_write_labels: ClassVar[bool] = True  # a group's name does not say whose it is

    bootstrap_servers: tuple[str, ...]
    """Some of its brokers, ``host:port``, tried in turn; they name the others."""

    sasl: KafkaSasl | None = None
    tls: Tls | None = None
    """Set, if only to ``{}``: connections are encrypted."""

    breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        yield from address_problems(self.bootstrap_servers, f"{at}.bootstrapServers")
        if self.sasl is not None and not self.sasl.username:
            yield f"{at}.sasl.username: must not be empty"
        if self.sasl is not None and not self.sasl.password_file:
            yield f"{at}.sasl.passwordFile: must not be empty"
        if self.tls is not None:
            yield from tls_problems(self.tls, f"{at}.tls")
            if self.tls.server_name:
                yield f"{at}.tls.serverName: cannot be set: each broker has a name of its own"
        yield from at_least_one({"breaker.failures": self.breaker.failures}, at)

"""The Kafka backend: computes the lag of a consumer group.

It reads the committed offsets from the coordinator of the group, the partition leaders from any broker, and the log end
offsets from the leaders, in this order and within one deadline.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest

from adapter.backends.connection.address import Address, address
from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.kafka import parse
from adapter.backends.kafka.client import KafkaBrokers, KafkaCredentials
from adapter.backends.kafka.lag import CommitProgress, PartitionOffsets, lag, samples, select_partitions
from adapter.backends.kafka.parse import EARLIEST, LATEST, Leaders, Partition
from adapter.backends.kafka.settings import PORT, Kafka, KafkaParameters
from adapter.backends.parameters import parameters
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING_DEADLINE: Final = timedelta(seconds=5)
_GROUP_COORDINATOR: Final = 0  # type of the requested coordinator


class KafkaBackend:
    """A client of one Kafka cluster."""

    def __init__(self, name: str, settings: Kafka, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._sasl = settings.sasl
        self._clock = clock
        self._tls = TlsFiles(settings.tls) if settings.tls else None
        self._password = SecretFile(settings.sasl.password_file, "sasl.passwordFile") if settings.sasl else None
        self._protected = ProtectedCall(settings.circuit_breaker, clock, (self._password,) if self._password else ())
        bootstrap = [address(text, PORT) for text in settings.bootstrap_servers]
        self._brokers = KafkaBrokers(bootstrap, self._read_credentials)
        self._progress = CommitProgress()

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return the lag of the group; topics that do not exist have no series."""
        wanted, now = parameters(query, KafkaParameters), self._clock()

        async def operation() -> tuple[RawSample, ...]:
            offsets = await self._offsets(wanted)
            lags = {partition: self._lag(wanted, partition, known, now) for partition, known in offsets.items()}
            return tuple(samples(wanted, lags, now))

        return await self._protected.run(query.text, deadline, operation, namespace=query.namespace)

    async def ping(self) -> None:
        brokers = parse.metadata_request(())
        await self._protected.run("ping", _PING_DEADLINE, lambda: self._brokers.send_to_any(brokers))

    async def aclose(self) -> None:
        await self._protected.aclose()
        await self._brokers.aclose()

    async def _offsets(self, wanted: KafkaParameters) -> dict[Partition, PartitionOffsets]:
        """Fetch committed offsets before end offsets; in the other order, the committed offset could be greater."""
        coordinator = await self._brokers.send_to_any(FindCoordinatorRequest(wanted.group, _GROUP_COORDINATOR))
        parse.raise_error_code(coordinator)
        all_partitions = OffsetFetchRequest(wanted.group, None)
        response = await self._brokers.send(Address(coordinator.host, coordinator.port), all_partitions)
        committed = parse.parse_committed_offsets(response)
        topics = wanted.topics or {partition.topic for partition in committed}
        if not topics:
            return {}
        leaders = parse.parse_leaders(await self._brokers.send_to_any(parse.metadata_request(topics)), topics)
        partitions = select_partitions(wanted, leaders)
        ends = await self._log_offsets(leaders, partitions, LATEST)
        offsets = {each: PartitionOffsets(committed.get(each), ends.get(each)) for each in partitions}
        if wanted.offset_reset == "earliest":
            without_commit = [partition for partition, known in offsets.items() if not known.has_valid_commit]
            starts = await self._log_offsets(leaders, without_commit, EARLIEST)
            offsets |= {each: offsets[each]._replace(start=starts.get(each)) for each in without_commit}
        return offsets

    async def _log_offsets(self, leaders: Leaders, partitions: Iterable[Partition], which: int) -> dict[Partition, int]:
        """Fetch the first or last offsets from the leaders of the partitions."""
        by_leader: dict[Address, list[Partition]] = defaultdict(list)
        for partition in partitions:
            if (leader := leaders[partition]) is not None:
                by_leader[leader].append(partition)
        requests = (
            self._brokers.send(leader, parse.log_offsets_request(led, which)) for leader, led in by_leader.items()
        )
        offsets: dict[Partition, int] = {}
        # return_exceptions: without it, the other requests would continue after the first error.
        for response in await asyncio.gather(*requests, return_exceptions=True):
            if isinstance(response, BaseException):
                raise response
            offsets |= parse.parse_log_offsets(response)
        return offsets

    def _lag(self, wanted: KafkaParameters, partition: Partition, offsets: PartitionOffsets, now: datetime) -> float:
        """Return the lag of a partition, at most 1 if the group is stuck in it."""
        partition_lag = lag(wanted, offsets)
        if not wanted.stuck_after:
            return partition_lag
        stuck_for = self._progress.time_since_commit(wanted.group, partition, offsets, now)
        return min(partition_lag, 1) if stuck_for >= wanted.stuck_after else partition_lag

    def _read_credentials(self) -> KafkaCredentials:
        tls = self._tls.context() if self._tls else None
        if self._sasl is None or self._password is None:
            return KafkaCredentials(tls)
        return KafkaCredentials(tls, self._sasl.mechanism, self._sasl.username, self._password.read_sync())

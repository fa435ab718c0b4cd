"""A real Kafka node in KRaft mode on loopback, and an administrator for it."""

import asyncio
import hashlib
import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.protocol.admin import CreateAclsRequest
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    CompactArray,
    CompactBytes,
    CompactString,
    Int8,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

from tests.backends.faulty_proxy import LOOPBACK
from tests.control_plane.cluster import free_port
from tests.control_plane.process import Program
from tests.missing_programs import require

T = TypeVar("T")
_HERE: Final = Path(__file__).parent / "kafka"
VERSION: Final = (re.findall(r"<kafka.version>(.*)</kafka.version>", (_HERE / "pom.xml").read_text()) or [""])[0]
_CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steadyscale" / "kafka"
JARS: Final = Path(os.environ.get("STEADYSCALE_KAFKA") or _CACHE) / VERSION
READER: Final = "reader"
_ANY: Final = "*"
_TOPIC, _GROUP, _CLUSTER = 2, 3, 4
_DESCRIBE, _ALLOW, _LITERAL = 8, 3, 3
_MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


class KafkaServer:
    """A node with listeners for the backend under test (EXTERNAL), for the tests (INTERNAL) and for the controller."""

    def __init__(
        self,
        folder: Path,
        advertised: int = 0,
        protocol: str = "SASL_PLAINTEXT",
        node: int = 1,
        controller_port: int = 0,
        **more: str,
    ) -> None:
        is_installed = (JARS / "complete").exists() and shutil.which("java") is not None
        install = "apt install default-jre-headless maven && tests/backends/kafka/install"
        require("kafka", install, is_installed=is_installed)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port, self.own_port, own_controller = (free_port() for _ in range(3))
        self.controller_port = controller_port or own_controller
        listeners = {"EXTERNAL": self.port, "INTERNAL": self.own_port}
        if not controller_port:
            listeners["CONTROLLER"] = own_controller
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        properties = {
            "process.roles": "broker" if controller_port else "broker,controller",
            "node.id": str(node),
            "controller.quorum.voters": f"1@{LOOPBACK}:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "INTERNAL",
            "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in listeners.items()),
            "advertised.listeners": (
                f"EXTERNAL://{LOOPBACK}:{advertised or self.port},INTERNAL://{LOOPBACK}:{self.own_port}"
            ),
            "listener.security.protocol.map": f"EXTERNAL:{protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.external.plain.sasl.jaas.config": f'{plain} user_plain="plain-password";',
            "listener.name.external.scram-sha-256.sasl.jaas.config": scram,
            "listener.name.external.scram-sha-512.sasl.jaas.config": scram,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "log.dirs": str(folder / "data"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "num.partitions": "1",
            "log.cleaner.enable": "false",
            **{key.replace("_", "."): value for key, value in more.items()},
        }
        self.config = folder / "server.properties"
        self.config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        java = ("java", "-Xmx256m", "-Xms128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
        self._java = (*java, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{JARS}/*")
        self.program = Program((*self._java, "kafka.Kafka", self.config), folder / "server.log", self._is_ready)

    def start(self) -> None:
        if not (self.folder / "data" / "meta.properties").exists():
            arguments = ("kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(self.config))
            done = subprocess.run((*self._java, *arguments), capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
            assert done.returncode == 0, done.stdout + done.stderr
        self.program.start(within=120)

    def stop(self) -> None:
        self.program.kill()  # no data has to be kept

    def _is_ready(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.own_port), 1):
                return True
        except OSError:
            return False


class _ScramResponse(Response):
    API_KEY = 51
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "results",
            CompactArray(
                ("user", CompactString("utf-8")),
                ("error_code", Int16),
                ("error_message", CompactString("utf-8")),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _ScramRequestV0(RequestStruct):
    API_KEY = 51
    API_VERSION = 0
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _ScramResponse
    SCHEMA = Schema(
        (
            "deletions",
            CompactArray(("name", CompactString("utf-8")), ("mechanism", Int8), ("tags", TaggedFields)),
        ),
        (
            "upsertions",
            CompactArray(
                ("name", CompactString("utf-8")),
                ("mechanism", Int8),
                ("iterations", Int32),
                ("salt", CompactBytes),
                ("salted_password", CompactBytes),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _ScramRequest(Request[_ScramRequestV0]):
    """The request that sets the password of a user, which aiokafka does not have."""

    API_KEY = 51

    def __init__(self, user: str, password: str, mechanism: str) -> None:
        self._user, self._password, self._mechanism = user, password, mechanism

    def build(self, request_struct_class: type[_ScramRequestV0]) -> _ScramRequestV0:
        digest = self._mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        salted = hashlib.pbkdf2_hmac(digest, self._password.encode(), b"test-salt", 4096)
        upsertion: tuple[object, ...] = (self._user, _MECHANISMS[self._mechanism], 4096, b"test-salt", salted, {})
        return request_struct_class([], [upsertion], {})


class Admin:
    """A client with all permissions, in a thread with its own event loop, independent of the code under test."""

    def __init__(self, server: KafkaServer) -> None:
        self._address = f"{LOOPBACK}:{server.own_port}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="peer kafka")
        self._thread.start()
        self._admin: Any = None
        self._producer: Any = None

    def do(self, work: Coroutine[Any, Any, T], within: float = 60) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(within)

    def open(self) -> None:
        async def open_all() -> None:
            while True:  # the node listens before it knows the cluster
                try:
                    self._admin = AIOKafkaAdminClient(bootstrap_servers=self._address)
                    await self._admin.start()
                    break
                except Exception:  # noqa: BLE001 - not yet
                    await asyncio.sleep(0.1)
            self._producer = AIOKafkaProducer(bootstrap_servers=self._address, linger_ms=0, acks="all")
            await self._producer.start()

        self.do(open_all(), 120)
        self.topic("first")  # opens all connections of the clients
        self.fill("first", 1)
        self.set_lag("first", {("first", 0): 0})

    def close(self) -> None:
        async def close_all() -> None:
            if self._producer is not None:
                await self._producer.stop()
            if self._admin is not None:
                await self._admin.close()

        self.do(close_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def set_password(self, password: str, user: str = READER) -> None:
        """Set the password of a user."""

        async def change() -> None:
            for mechanism in _MECHANISMS:
                node = self._admin._client.get_random_node()
                response = await self._admin._client.send(node, _ScramRequest(user, password, mechanism))
                assert [result[1] for result in response.results] == [0], response

        self.do(change())

    def allow(self, user: str = READER, topic: str = _ANY, group: str = _ANY) -> None:
        """Grant the permissions that docs/backends/kafka.md documents."""

        async def change() -> None:
            for kind, name in ((_TOPIC, topic), (_GROUP, group)):
                request = CreateAclsRequest(kind, name, _LITERAL, f"User:{user}", _ANY, _DESCRIBE, _ALLOW)
                response = await self._admin._client.send(self._admin._client.get_random_node(), request)
                assert [code for code, _ in response.creation_responses] == [0], response

        self.do(change())

    def topic(self, name: str, partitions: int = 1, on: Mapping[int, list[int]] | None = None) -> None:
        """Create a topic, optionally with its partitions on given nodes; return when it has leaders."""
        new = NewTopic(name, -1, -1, replica_assignments=dict(on)) if on else NewTopic(name, partitions, 1)
        partitions = len(on or range(partitions))

        async def make() -> None:
            await self._admin.create_topics([new])
            while len(await self._producer.partitions_for(name)) < partitions:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.02)

        self.do(make())

    def wait_for_brokers(self, number: int) -> None:
        async def wait() -> None:
            while len((await self._admin.describe_cluster())["brokers"]) < number:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.1)

        self.do(wait())

    def fill(self, topic: str, *counts: int) -> None:
        """Add these numbers of messages to the partitions."""

        async def fill() -> None:
            for partition, count in enumerate(counts):
                for _ in range(count):
                    await self._producer.send(topic, b"work", partition=partition)
            await self._producer.flush()

        self.do(fill())

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets for a group; negative offsets count from the end."""

        async def commit() -> None:
            consumer = AIOKafkaConsumer(bootstrap_servers=self._address, group_id=group, enable_auto_commit=False)
            await consumer.start()
            try:
                wanted = {TopicPartition(*key): offset for key, offset in offsets.items()}
                consumer.assign(list(wanted))
                ends = await consumer.end_offsets(list(wanted))
                await consumer.commit(
                    {each: offset if offset >= 0 else ends[each] + 1 + offset for each, offset in wanted.items()}
                )
            finally:
                await consumer.stop()

        self.do(commit())

    def set_lag(self, group: str, lags: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets for a group so that it has these lags."""
        self.commit(group, {partition: -1 - lag for partition, lag in lags.items()})

    def delete_topic(self, name: str) -> None:
        self.do(self._admin.delete_topics([name]))

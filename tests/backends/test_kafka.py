"""Tests of the Kafka backend beyond the contract of all backends."""

import asyncio
import logging
import struct
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import RecordsToDelete
from cryptography.hazmat.primitives import serialization

from adapter.backends.loader import create_backend
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError
from adapter.process import clock
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, configuration_for, open_backend, query_for
from tests.backends.contract import Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.kafka_server import READER, Admin, KafkaServer
from tests.backends.peers.kafka import Peer
from tests.control_plane.certificates import Authority, Credentials
from tests.control_plane.cluster import free_port

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="kafka")], indirect=True, scope="session"),
]
LOGIN_FAILED = (FailureClass.UNAUTHORIZED, "authentication failed: check sasl.username and sasl.passwordFile")


async def values(opened: OpenBackend, **parameters: object) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in await opened.fetch(dict(parameters))}


async def failure(opened: OpenBackend, **parameters: object) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.fetch(dict(parameters))
    return caught.value.failure, caught.value.message


@pytest.fixture
def topic(peer: Peer, request: pytest.FixtureRequest) -> str:
    """A topic with three partitions of 5, 7 and 0 messages, separate for each test."""
    name = str(request.node.originalname)[:80]
    peer.admin.topic(name, 3)
    peer.admin.fill(name, 5, 7)
    return name


# ---- lag


async def test_lag_per_topic_partition_and_group(peer: Peer, topic: str) -> None:
    peer.admin.topic(f"{topic}-2")
    peer.admin.fill(f"{topic}-2", 4)
    peer.admin.set_lag(topic, {(topic, 0): 2, (topic, 1): 3, (topic, 2): 0, (f"{topic}-2", 0): 4})
    async with open_backend(peer) as opened:
        assert await values(opened, group=topic) == {(topic, topic): 5, (topic, f"{topic}-2"): 4}
        assert await values(opened, group=topic, topics=[topic]) == {(topic, topic): 5}
        assert await values(opened, group=topic, series="group") == {(topic,): 9}
        by_partition = {(topic, topic, "0"): 2, (topic, topic, "1"): 3, (topic, topic, "2"): 0}
        assert await values(opened, group=topic, topics=[topic], series="partition") == by_partition
        assert await values(opened, group=topic, topics=[topic], partitions="1-2") == {(topic, topic): 3}
        assert await values(opened, group=topic, topics=[topic], partitions="7") == {}
        limited = {"group": topic, "topics": [topic], "lagPerConsumer": 1}
        assert await values(opened, **limited) == {(topic, topic): 3}
        assert await values(opened, **limited, limitToPartitionsWithLag=True) == {(topic, topic): 2}


async def test_committed_messages_do_not_count_as_lag(peer: Peer, topic: str) -> None:
    async def consume() -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=f"{LOOPBACK}:{peer.server.own_port}",
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            for _ in range(8):
                message = await consumer.getone()
                await consumer.commit({TopicPartition(topic, message.partition): message.offset + 1})
        finally:
            await consumer.stop()

    await asyncio.to_thread(lambda: peer.admin.do(consume()))
    async with open_backend(peer) as opened:
        assert await values(opened, group=topic, topics=[topic], offsetReset="earliest") == {(topic, topic): 4}


async def test_lag_without_commit_depends_on_offset_reset(peer: Peer, topic: str) -> None:
    parameters = {"group": "new", "topics": [topic]}
    async with open_backend(peer) as opened:
        by_partition = {("new", topic, "0"): 1, ("new", topic, "1"): 1, ("new", topic, "2"): 0}
        assert await values(opened, **parameters, series="partition") == by_partition
        assert await values(opened, **parameters, zeroWithoutOffset=True) == {("new", topic): 0}
        assert await values(opened, **parameters, offsetReset="earliest") == {("new", topic): 12}
        old = {TopicPartition(topic, 1): RecordsToDelete(before_offset=4)}
        await asyncio.to_thread(lambda: peer.admin.do(peer.admin._admin.delete_records(old)))
        assert await values(opened, **parameters, offsetReset="earliest") == {("new", topic): 8}
        assert await values(opened, group="new") == {}


async def test_missing_topic_has_no_series_and_is_not_created(peer: Peer, topic: str) -> None:
    peer.admin.set_lag(topic, {(topic, 0): 1})
    async with open_backend(peer) as opened:
        assert await values(opened, group=topic, topics=["missing.topic"]) == {}
        assert await values(opened, group=topic, topics=["missing.topic", topic], series="group") == {(topic,): 2}
        assert "missing.topic" not in peer.admin.do(peer.admin._admin.list_topics())
        await asyncio.to_thread(peer.admin.delete_topic, topic)
        for _ in range(200):
            if not await values(opened, group=topic):
                break
            await asyncio.sleep(0.05)
        assert await values(opened, group=topic) == {}


async def test_partition_without_commits_for_stuck_after_counts_as_one(peer: Peer, topic: str) -> None:
    peer.admin.set_lag(topic, {(topic, 0): 4, (topic, 1): 5, (topic, 2): 0})
    now = [clock()]
    backend = create_backend("it", configuration_for(peer).backends["it"].settings, lambda: now[0])
    parameters = query_for(peer, {"group": topic, "topics": [topic], "stuckAfter": "1m"})

    async def lag() -> float:
        (sample,) = await backend.fetch(parameters, timedelta(seconds=10))
        return sample.value

    try:
        assert await lag() == 9
        now[0] += timedelta(seconds=50)
        await asyncio.to_thread(peer.admin.set_lag, topic, {(topic, 1): 4})
        assert await lag() == 8
        now[0] += timedelta(seconds=10)
        assert await lag() == 1 + 4  # no commit in the first for a minute, a commit in the second
        await asyncio.to_thread(peer.admin.set_lag, topic, {(topic, 0): 3})
        assert await lag() == 3 + 4
    finally:
        await backend.aclose()


# ---- authentication and authorization


def sasl(tmp_path: Path, username: str, password: str, mechanism: str) -> Json:
    file = tmp_path / "password"
    file.write_text(password)
    return {"sasl": {"username": username, "passwordFile": str(file), "mechanism": mechanism}}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_sasl_mechanisms_and_no_password_in_logs(
    peer: Peer, mechanism: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    user, password = ("plain", "plain-password") if mechanism == "PLAIN" else (READER, peer.good)
    peer.admin.allow(user)
    async with open_backend(peer, **sasl(tmp_path, user, password, mechanism)) as opened:
        assert await values(opened, group="empty-group") == {}
    async with open_backend(peer, **sasl(tmp_path, user, "wrong-password", mechanism)) as opened:
        assert await failure(opened, group="g") == LOGIN_FAILED
    records = [str(vars(record)) for record in caplog.records]
    assert records
    assert not [line for line in records if password in line or "wrong-password" in line]


async def test_broker_with_sasl_rejects_a_connection_without_it(peer: Peer) -> None:
    async with open_backend(peer, sasl=None) as opened:
        assert (await failure(opened, group="g"))[0] is FailureClass.UNREACHABLE


async def test_missing_permission_on_topic_and_group_is_reported(peer: Peer, topic: str, tmp_path: Path) -> None:
    peer.admin.set_password("guest-password", "guest")
    peer.admin.allow("guest", "theirs", "theirs")
    peer.admin.topic("theirs")
    peer.admin.fill("theirs", 2)
    peer.admin.set_lag("theirs", {("theirs", 0): 2, (topic, 0): 5})
    async with open_backend(peer, **sasl(tmp_path, "guest", "guest-password", "SCRAM-SHA-512")) as opened:
        assert await values(opened, group="theirs", topics=["theirs"]) == {("theirs", "theirs"): 2}
        permission_denied = (FailureClass.UNAUTHORIZED, "permission denied: the user needs DESCRIBE on the topic")
        assert await failure(opened, group="theirs", topics=[topic]) == permission_denied
        permission_denied = (FailureClass.UNAUTHORIZED, "permission denied: the user needs DESCRIBE on the group")
        assert await failure(opened, group="mine") == permission_denied


# ---- connections


async def test_one_connection_is_shared_and_reused(peer: Peer, topic: str) -> None:
    peer.admin.set_lag(topic, {(topic, 0): 1})
    before = peer.proxy.connections
    async with open_backend(peer) as opened:
        for _ in range(3):
            await asyncio.gather(*(opened.fetch({"group": topic}) for _ in range(40)))
    assert peer.proxy.connections - before == 1  # the bootstrap server is also leader and coordinator


async def test_next_bootstrap_server_is_used_if_the_first_is_unreachable(peer: Peer) -> None:
    unused = f"{LOOPBACK}:{free_port()}"
    async with open_backend(peer, bootstrapServers=[unused, peer.proxy.address]) as opened:
        assert await values(opened, group="empty-group") == {}
    async with open_backend(peer, bootstrapServers=[unused]) as opened:
        assert await failure(opened, group="g") == (FailureClass.UNREACHABLE, "connection refused")


@pytest.mark.parametrize(
    "frame", [b"", b"abc", b"\0\0\0\1", b"\0\0\0\1" + b"\xff" * 40, b"\0\0\0\1\0\0\0\0\0\1\0\3\0\x09\0\0"]
)
async def test_unexpected_response_is_rejected(peer: Peer, frame: bytes) -> None:
    peer.proxy.respond(struct.pack(">i", len(frame)) + frame)
    async with open_backend(peer) as opened:
        assert await failure(opened, group="g") == (FailureClass.REFUSED, "unexpected response format")


# ---- TLS and restarts


class TlsCluster:
    """A broker that requires client certificates and SASL."""

    def __init__(self, folder: Path, password: str) -> None:
        self.folder = folder
        authority = Authority.new("kafka")
        server = authority.server(LOOPBACK)
        authority.client("steadyscale").save(folder, "client")
        (folder / "ca.crt").write_text(authority.pem)
        (folder / "other-ca.crt").write_text(Authority.new("other").pem)
        self.server = KafkaServer(
            folder / "server",
            protocol="SASL_SSL",
            ssl_keystore_type="PEM",
            ssl_keystore_certificate_chain=_line(server.certificate_pem),
            ssl_keystore_key=_line(_key(server)),
            ssl_truststore_type="PEM",
            ssl_truststore_certificates=_line(authority.pem),
            listener_name_external_ssl_client_auth="required",
        )
        self.server.start()
        self.admin = Admin(self.server)
        self.admin.open()
        self.admin.set_password(password)
        self.admin.allow()

    def settings(self, **others: object) -> Json:
        files = {"caFile": "ca.crt", "certFile": "client.crt", "keyFile": "client.key"}
        tls = {**{key: str(self.folder / name) for key, name in files.items()}, **others}
        return {"bootstrapServers": [f"{LOOPBACK}:{self.server.port}"], "tls": tls}

    def stop(self) -> None:
        self.admin.close()
        self.server.stop()


def _line(pem: str) -> str:
    """Return PEM as one line of a Java properties file."""
    return pem.strip().replace("\n", "\\n")


def _key(credentials: Credentials) -> str:
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return credentials.key.private_bytes(pem, form, serialization.NoEncryption()).decode()


@pytest.fixture(scope="session")
def encrypted(running_peer: Peer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsCluster]:
    cluster = TlsCluster(tmp_path_factory.mktemp("encrypted"), running_peer.good)
    yield cluster
    cluster.stop()


async def test_mutual_tls(peer: Peer, encrypted: TlsCluster, tmp_path: Path) -> None:
    encrypted.admin.set_password(peer.good)
    async with open_backend(peer, **encrypted.settings()) as opened:
        assert await values(opened, group="empty-group") == {}
        await opened.backend.ping()
    not_accepted = (FailureClass.UNREACHABLE, "TLS handshake failed: certificate not accepted")
    for ca in ("", str(encrypted.folder / "other-ca.crt")):
        async with open_backend(peer, **encrypted.settings(caFile=ca)) as opened:
            assert await failure(opened, group="g") == not_accepted
    gone = encrypted.settings(certFile=str(tmp_path / "gone.crt"))
    async with open_backend(peer, **gone) as opened:
        assert await failure(opened, group="g") == (
            FailureClass.UNREACHABLE,
            "TLS files cannot be loaded: check caFile, certFile and keyFile",
        )
    without = encrypted.settings(certFile="", keyFile="")
    async with open_backend(peer, **without) as opened:
        assert (await failure(opened, group="g"))[0] is FailureClass.UNREACHABLE
    plain = {"bootstrapServers": encrypted.settings()["bootstrapServers"]}
    async with open_backend(peer, **plain) as opened:
        assert (await failure(opened, group="g"))[0] in {FailureClass.UNREACHABLE, FailureClass.REFUSED}


async def test_backend_recovers_after_the_broker_restarts(peer: Peer, encrypted: TlsCluster) -> None:
    encrypted.admin.set_password(peer.good)
    async with open_backend(peer, **encrypted.settings()) as opened:
        await asyncio.to_thread(encrypted.admin.set_lag, "first", {("first", 0): 1})
        assert await values(opened, group="first") == {("first", "first"): 1}
        await asyncio.to_thread(encrypted.server.program.kill)
        for _ in range(2):
            assert (await failure(opened, group="first"))[0] is FailureClass.UNREACHABLE
        await asyncio.to_thread(encrypted.server.start)
        for _ in range(600):
            try:
                if await values(opened, group="first") == {("first", "first"): 1}:
                    break
            except BackendError:
                pass
            await asyncio.sleep(0.1)
        assert await values(opened, group="first") == {("first", "first"): 1}


# ---- validation


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"group": ""}, "group: must not be empty"),
        ({"group": "g", "topics": ["a b"]}, "topics[0]: must be a topic name of letters, digits, dots, - and _"),
        ({"group": "g", "topics": [".."]}, "topics[0]: must be a topic name of letters, digits, dots, - and _"),
        ({"group": "g", "partitions": "1-"}, "partitions: must be numbers and ranges, such as 0-3,7"),
        ({"group": "g", "partitions": "3-1"}, "partitions: must be numbers and ranges, such as 0-3,7"),
        ({"group": "g", "lagPerConsumer": -1}, "lagPerConsumer: must not be negative, is -1"),
        ({"group": "g", "limitToPartitionsWithLag": True}, "limitToPartitionsWithLag: requires lagPerConsumer"),
        (
            {"group": "g", "stuckAfter": "soon"},
            "stuckAfter: 'soon' is not a duration such as 10s or 1m30s",
        ),
    ],
)
def test_invalid_parameters_are_reported(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, parameters)
    assert caught.value.messages == (f"rules[0].parameters.{problem}",)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"bootstrapServers": []}, "bootstrapServers: must have at least one address; write host:port"),
        (
            {"bootstrapServers": ["a,b"]},
            "bootstrapServers[0]: not an address; write host:port, without a scheme",
        ),
        ({"sasl": {"username": "", "passwordFile": "p"}}, "sasl.username: must not be empty"),
        ({"sasl": {"username": "u", "passwordFile": ""}}, "sasl.passwordFile: must not be empty"),
        ({"tls": {"serverName": "a"}}, "tls.serverName: cannot be set: each broker is verified with its own host name"),
        ({"tls": {"keyFile": "k"}}, "tls.certFile: required with keyFile"),
        ({"circuitBreaker": {"failureThreshold": 0}}, "circuitBreaker.failureThreshold: must be at least 1, is 0"),
    ],
)
def test_invalid_settings_are_reported(peer: Peer, settings: Any, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, **settings)
    assert caught.value.messages == (f"backends.it.kafka.{problem}",)

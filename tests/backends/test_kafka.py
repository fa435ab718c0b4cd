"""What is Kafka's own: partitions, groups that never committed, rights, ways to show who we are, TLS, a dead broker."""

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

from adapter.app import clock
from adapter.backends.loader import opened
from adapter.errors import BackendError, ConfigInvalid
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of, configured, question
from tests.backends.contract import Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.kafka_server import READER, Admin, KafkaServer
from tests.backends.peers.kafka import Peer
from tests.control_plane.certificates import Authority, Credentials
from tests.control_plane.cluster import free_port

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="kafka")], indirect=True, scope="session"),
]
NOT_BELIEVED = (FailureClass.UNAUTHORIZED, "it does not believe username and password")


async def found(opened: Opened, **asked: object) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in await opened.ask(dict(asked))}


async def failure(opened: Opened, **asked: object) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.ask(dict(asked))
    return caught.value.failure, caught.value.message


@pytest.fixture
def topic(peer: Peer, request: pytest.FixtureRequest) -> str:
    """A topic of a test's own, with three partitions and 5, 7 and no messages."""
    name = str(request.node.originalname)[:80]
    peer.admin.topic(name, 3)
    peer.admin.fill(name, 5, 7)
    return name


# ---- lag


async def test_lag_is_by_topic_by_partition_or_of_the_group(peer: Peer, topic: str) -> None:
    peer.admin.topic(f"{topic}-2")
    peer.admin.fill(f"{topic}-2", 4)
    peer.admin.behind(topic, {(topic, 0): 2, (topic, 1): 3, (topic, 2): 0, (f"{topic}-2", 0): 4})
    async with backend_of(peer) as opened:
        assert await found(opened, group=topic) == {(topic, topic): 5, (topic, f"{topic}-2"): 4}
        assert await found(opened, group=topic, topics=[topic]) == {(topic, topic): 5}
        assert await found(opened, group=topic, series="group") == {(topic,): 9}
        by_partition = {(topic, topic, "0"): 2, (topic, topic, "1"): 3, (topic, topic, "2"): 0}
        assert await found(opened, group=topic, topics=[topic], series="partition") == by_partition
        assert await found(opened, group=topic, topics=[topic], partitions="1-2") == {(topic, topic): 3}
        assert await found(opened, group=topic, topics=[topic], partitions="7") == {}
        capped = {"group": topic, "topics": [topic], "lagPerConsumer": 1}
        assert await found(opened, **capped) == {(topic, topic): 3}
        assert await found(opened, **capped, limitToPartitionsWithLag=True) == {(topic, topic): 2}


async def test_what_a_consumer_reads_and_commits_is_no_lag(peer: Peer, topic: str) -> None:
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
    async with backend_of(peer) as opened:
        assert await found(opened, group=topic, topics=[topic], offsetReset="earliest") == {(topic, topic): 4}


async def test_a_group_that_never_committed_is_counted_as_its_consumers_would_begin(peer: Peer, topic: str) -> None:
    asked = {"group": "new", "topics": [topic]}
    async with backend_of(peer) as opened:
        by_partition = {("new", topic, "0"): 1, ("new", topic, "1"): 1, ("new", topic, "2"): 0}
        assert await found(opened, **asked, series="partition") == by_partition
        assert await found(opened, **asked, zeroWithoutOffset=True) == {("new", topic): 0}
        assert await found(opened, **asked, offsetReset="earliest") == {("new", topic): 12}
        old = {TopicPartition(topic, 1): RecordsToDelete(before_offset=4)}
        await asyncio.to_thread(lambda: peer.admin.do(peer.admin._admin.delete_records(old)))
        assert await found(opened, **asked, offsetReset="earliest") == {("new", topic): 8}
        assert await found(opened, group="new") == {}


async def test_a_topic_that_is_not_there_is_no_series_and_is_not_made_by_asking(peer: Peer, topic: str) -> None:
    peer.admin.behind(topic, {(topic, 0): 1})
    async with backend_of(peer) as opened:
        assert await found(opened, group=topic, topics=["nobody.made_it"]) == {}
        assert await found(opened, group=topic, topics=["nobody.made_it", topic], series="group") == {(topic,): 2}
        assert "nobody.made_it" not in peer.admin.do(peer.admin._admin.list_topics())
        await asyncio.to_thread(peer.admin.delete_topic, topic)
        for _ in range(200):
            if not await found(opened, group=topic):
                break
            await asyncio.sleep(0.05)
        assert await found(opened, group=topic) == {}


async def test_a_partition_that_does_not_move_counts_as_one(peer: Peer, topic: str) -> None:
    peer.admin.behind(topic, {(topic, 0): 4, (topic, 1): 5, (topic, 2): 0})
    now = [clock()]
    backend = opened("it", configured(peer).backends["it"].settings, lambda: now[0])
    asked = question(peer, {"group": topic, "topics": [topic], "stuckAfter": "1m"})

    async def lag() -> float:
        (sample,) = await backend.fetch(asked, timedelta(seconds=10))
        return sample.value

    try:
        assert await lag() == 9
        now[0] += timedelta(seconds=50)
        await asyncio.to_thread(peer.admin.behind, topic, {(topic, 1): 4})
        assert await lag() == 8
        now[0] += timedelta(seconds=10)
        assert await lag() == 1 + 4  # the first stands for a minute, the second moved
        await asyncio.to_thread(peer.admin.behind, topic, {(topic, 0): 3})
        assert await lag() == 3 + 4
    finally:
        await backend.aclose()


# ---- who we are, and what we may


def sasl(tmp_path: Path, username: str, password: str, mechanism: str) -> Json:
    file = tmp_path / "password"
    file.write_text(password)
    return {"sasl": {"username": username, "passwordFile": str(file), "mechanism": mechanism}}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_every_mechanism_is_believed_with_the_right_password_only(
    peer: Peer, mechanism: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    user, password = ("plain", "password-of-plain") if mechanism == "PLAIN" else (READER, peer.good)
    peer.admin.allow(user)
    async with backend_of(peer, **sasl(tmp_path, user, password, mechanism)) as opened:
        assert await found(opened, group="nobody-is-in-it") == {}
    async with backend_of(peer, **sasl(tmp_path, user, "another-password", mechanism)) as opened:
        assert await failure(opened, group="g") == NOT_BELIEVED
    said = [str(vars(record)) for record in caplog.records]
    assert said
    assert not [line for line in said if password in line or "another-password" in line]


async def test_without_sasl_nobody_is_let_in(peer: Peer) -> None:
    async with backend_of(peer, sasl=None) as opened:
        assert (await failure(opened, group="g"))[0] is FailureClass.UNREACHABLE


async def test_what_the_user_may_not_describe_is_told(peer: Peer, topic: str, tmp_path: Path) -> None:
    peer.admin.believe("password-of-guest", "guest")
    peer.admin.allow("guest", "theirs", "theirs")
    peer.admin.topic("theirs")
    peer.admin.fill("theirs", 2)
    peer.admin.behind("theirs", {("theirs", 0): 2, (topic, 0): 5})
    async with backend_of(peer, **sasl(tmp_path, "guest", "password-of-guest", "SCRAM-SHA-512")) as opened:
        assert await found(opened, group="theirs", topics=["theirs"]) == {("theirs", "theirs"): 2}
        may_not = (FailureClass.UNAUTHORIZED, "the user may not describe the topic")
        assert await failure(opened, group="theirs", topics=[topic]) == may_not
        may_not = (FailureClass.UNAUTHORIZED, "the user may not describe the group")
        assert await failure(opened, group="mine") == may_not


# ---- connections


async def test_a_connection_is_shared_and_kept(peer: Peer, topic: str) -> None:
    peer.admin.behind(topic, {(topic, 0): 1})
    before = peer.hop.connections
    async with backend_of(peer) as opened:
        for _ in range(3):
            await asyncio.gather(*(opened.ask({"group": topic}) for _ in range(40)))
    assert peer.hop.connections - before == 1  # the broker that we know first is also leader and coordinator


async def test_another_broker_is_taken_if_the_first_is_not_there(peer: Peer) -> None:
    nobody = f"{LOOPBACK}:{free_port()}"
    async with backend_of(peer, bootstrapServers=[nobody, peer.hop.address]) as opened:
        assert await found(opened, group="nobody-is-in-it") == {}
    async with backend_of(peer, bootstrapServers=[nobody]) as opened:
        assert await failure(opened, group="g") == (FailureClass.UNREACHABLE, "connection refused")


@pytest.mark.parametrize(
    "frame", [b"", b"abc", b"\0\0\0\1", b"\0\0\0\1" + b"\xff" * 40, b"\0\0\0\1\0\0\0\0\0\1\0\3\0\x09\0\0"]
)
async def test_frames_that_make_no_sense_are_refused(peer: Peer, frame: bytes) -> None:
    peer.hop.answer(struct.pack(">i", len(frame)) + frame)
    async with backend_of(peer) as opened:
        assert await failure(opened, group="g") == (FailureClass.REFUSED, "it answers, but not as Kafka does")


# ---- another broker: encrypted, and killed


class Encrypted:
    """A Kafka that wants to see a certificate and a password."""

    def __init__(self, folder: Path, password: str) -> None:
        self.folder = folder
        authority = Authority.new("kafka")
        server = authority.server(LOOPBACK)
        authority.client("us").save(folder, "client")
        (folder / "ca.crt").write_text(authority.pem)
        (folder / "strangers.crt").write_text(Authority.new("strangers").pem)
        self.server = KafkaServer(
            folder / "server",
            door="SASL_SSL",
            ssl_keystore_type="PEM",
            ssl_keystore_certificate_chain=_line(server.certificate_pem),
            ssl_keystore_key=_line(_key(server)),
            ssl_truststore_type="PEM",
            ssl_truststore_certificates=_line(authority.pem),
            listener_name_door_ssl_client_auth="required",
        )
        self.server.start()
        self.admin = Admin(self.server)
        self.admin.open()
        self.admin.believe(password)
        self.admin.allow()

    def settings(self, **others: object) -> Json:
        files = {"caFile": "ca.crt", "certFile": "client.crt", "keyFile": "client.key"}
        tls = {**{key: str(self.folder / name) for key, name in files.items()}, **others}
        return {"bootstrapServers": [f"{LOOPBACK}:{self.server.port}"], "tls": tls}

    def stop(self) -> None:
        self.admin.close()
        self.server.stop()


def _line(pem: str) -> str:
    """Write PEM as Java's files of properties have it."""
    return pem.strip().replace("\n", "\\n")


def _key(credentials: Credentials) -> str:
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return credentials.key.private_bytes(pem, form, serialization.NoEncryption()).decode()


@pytest.fixture(scope="session")
def encrypted(running: Peer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    made = Encrypted(tmp_path_factory.mktemp("encrypted"), running.good)
    yield made
    made.stop()


async def test_both_sides_show_certificates(peer: Peer, encrypted: Encrypted, tmp_path: Path) -> None:
    encrypted.admin.believe(peer.good)
    async with backend_of(peer, **encrypted.settings()) as opened:
        assert await found(opened, group="nobody-is-in-it") == {}
        await opened.backend.ping()
    not_accepted = (FailureClass.UNREACHABLE, "its certificate or ours was not accepted")
    for ca in ("", str(encrypted.folder / "strangers.crt")):
        async with backend_of(peer, **encrypted.settings(caFile=ca)) as opened:
            assert await failure(opened, group="g") == not_accepted
    gone = encrypted.settings(certFile=str(tmp_path / "gone.crt"))
    async with backend_of(peer, **gone) as opened:
        assert await failure(opened, group="g") == (FailureClass.UNREACHABLE, "the files of tls cannot be used")
    without = encrypted.settings(certFile="", keyFile="")
    async with backend_of(peer, **without) as opened:
        assert (await failure(opened, group="g"))[0] is FailureClass.UNREACHABLE
    plain = {"bootstrapServers": encrypted.settings()["bootstrapServers"]}
    async with backend_of(peer, **plain) as opened:
        assert (await failure(opened, group="g"))[0] in {FailureClass.UNREACHABLE, FailureClass.REFUSED}


async def test_a_broker_that_is_killed_is_unreachable_and_comes_back(peer: Peer, encrypted: Encrypted) -> None:
    encrypted.admin.believe(peer.good)
    async with backend_of(peer, **encrypted.settings()) as opened:
        await asyncio.to_thread(encrypted.admin.behind, "first", {("first", 0): 1})
        assert await found(opened, group="first") == {("first", "first"): 1}
        await asyncio.to_thread(encrypted.server.program.kill)
        for _ in range(2):
            assert (await failure(opened, group="first"))[0] is FailureClass.UNREACHABLE
        await asyncio.to_thread(encrypted.server.start)
        for _ in range(600):
            try:
                if await found(opened, group="first") == {("first", "first"): 1}:
                    break
            except BackendError:
                pass
            await asyncio.sleep(0.1)
        assert await found(opened, group="first") == {("first", "first"): 1}


# ---- what is said of a configuration


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"group": ""}, "group: must not be empty"),
        ({"group": "g", "topics": ["a b"]}, "topics[0]: cannot be a topic; those have letters, digits, dots, - and _"),
        ({"group": "g", "topics": [".."]}, "topics[0]: cannot be a topic; those have letters, digits, dots, - and _"),
        ({"group": "g", "partitions": "1-"}, "partitions: must be numbers and ranges, such as 0-3,7"),
        ({"group": "g", "partitions": "3-1"}, "partitions: must be numbers and ranges, such as 0-3,7"),
        ({"group": "g", "lagPerConsumer": -1}, "lagPerConsumer: must not be negative, is -1"),
        ({"group": "g", "limitToPartitionsWithLag": True}, "limitToPartitionsWithLag: needs lagPerConsumer"),
        (
            {"group": "g", "stuckAfter": "soon"},
            "stuckAfter: 'soon' is not a duration such as 10s or 1m30s",
        ),
        ({"group": "g", "series": "topics"}, "series: invalid enum value 'topics'"),
    ],
)
def test_parameters_that_make_no_sense(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, parameters)
    assert caught.value.problems == (f"rules[0].parameters.{problem}",)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"bootstrapServers": []}, "bootstrapServers: at least one is needed, written host:port"),
        (
            {"bootstrapServers": ["a,b"]},
            "bootstrapServers[0]: not an address; write host:port, without any scheme",
        ),
        ({"sasl": {"username": "", "passwordFile": "p"}}, "sasl.username: must not be empty"),
        ({"sasl": {"username": "u", "passwordFile": ""}}, "sasl.passwordFile: must not be empty"),
        ({"tls": {"serverName": "a"}}, "tls.serverName: cannot be set: each broker has a name of its own"),
        ({"tls": {"keyFile": "k"}}, "tls.certFile: is needed with keyFile"),
        ({"breaker": {"failures": 0}}, "breaker.failures: must be at least 1, is 0"),
    ],
)
def test_settings_that_make_no_sense(peer: Peer, settings: Any, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, **settings)
    assert caught.value.problems == (f"backends.it.kafka.{problem}",)

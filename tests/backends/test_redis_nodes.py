"""Tests of the Redis backend with Sentinel and with Redis Cluster."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.crc import key_slot

from adapter.errors import BackendError
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, open_backend
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.peers.redis import Peer
from tests.backends.redis_server import ACL_RULES, RedisServer
from tests.control_plane.cluster import free_port

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="redis")], indirect=True, scope="session"),
]


async def values(opened: OpenBackend, **parameters: str) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in await opened.fetch(dict(parameters))}


async def eventually(opened: OpenBackend, expected: object, **parameters: str) -> None:
    for _ in range(600):
        try:
            if await values(opened, **parameters) == expected:
                return
        except BackendError:
            pass
        await asyncio.sleep(0.05)
    assert await values(opened, **parameters) == expected


def addresses(*servers: RedisServer) -> list[str]:
    return [f"{LOOPBACK}:{server.port}" for server in servers]


# ---- sentinels


class SentinelDeployment:
    """A master, its replica and one sentinel, which is a quorum of one."""

    def __init__(self, folder: Path, password: str) -> None:
        no_delay = "repl-diskless-sync-delay 0"
        self.master = RedisServer(folder / "master", no_delay)
        self.replica = RedisServer(folder / "replica", no_delay, f"replicaof {LOOPBACK} {self.master.port}")
        for server in (self.master, self.replica):
            server.start()
            server.set_password(password)
        self.sentinel = RedisServer(
            folder / "sentinel",
            f"sentinel monitor orders {LOOPBACK} {self.master.port} 1",
            "sentinel down-after-milliseconds orders 300",
            "sentinel failover-timeout orders 2000",
            sentinel=True,
        )
        self.sentinel.start()

    def stop(self) -> None:
        for server in (self.sentinel, self.replica, self.master):
            server.stop()

    async def wait_until(self, condition: Any) -> None:
        def check() -> bool:
            with self.sentinel.client() as client:
                return bool(condition(client))

        for _ in range(600):
            if await asyncio.to_thread(check):
                return
            await asyncio.sleep(0.05)
        pytest.fail("the sentinel did not reach the expected state")


@pytest.fixture
def deployment(peer: Peer, tmp_path: Path) -> Iterator[SentinelDeployment]:
    deployment = SentinelDeployment(tmp_path, peer.good)
    try:
        yield deployment
    finally:
        deployment.stop()


async def test_commands_are_sent_to_the_master_after_a_failover(peer: Peer, deployment: SentinelDeployment) -> None:
    with deployment.master.client() as client:
        client.rpush("jobs", "a", "b")
        assert client.wait(1, 9000) == 1
    await deployment.wait_until(lambda sentinel: sentinel.execute_command("SENTINEL", "REPLICAS", "orders"))
    unused = f"{LOOPBACK}:{free_port()}"
    where = {"addresses": [unused, *addresses(deployment.sentinel)], "sentinel": {"master": "orders"}}
    async with open_backend(peer, **where) as opened:
        assert await values(opened, key="jobs") == {("jobs",): 2}
        await opened.backend.ping()
        await asyncio.to_thread(deployment.master.program.kill)
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"key": "jobs"})
        assert caught.value.failure is FailureClass.UNREACHABLE
        await eventually(opened, {("jobs",): 2}, key="jobs")
        with deployment.replica.client() as client:
            client.rpush("jobs", "c")
        assert await values(opened, key="jobs") == {("jobs",): 3}


async def test_unknown_master_name_is_reported(peer: Peer, deployment: SentinelDeployment) -> None:
    async with open_backend(peer, addresses=addresses(deployment.sentinel), sentinel={"master": "mails"}) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"key": "jobs"})
        assert caught.value.message == "the sentinels do not know the master: check sentinel.master"


async def test_sentinels_can_have_their_own_password(
    peer: Peer, deployment: SentinelDeployment, tmp_path: Path
) -> None:
    with deployment.sentinel.client() as client:
        client.execute_command("ACL", "SETUSER", "default", "resetpass", ">password-of-sentinels")
    where = {"addresses": addresses(deployment.sentinel), "sentinel": {"master": "orders"}}
    async with open_backend(peer, **where) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"key": "jobs"})
        assert (caught.value.failure, caught.value.message) == (
            FailureClass.UNAUTHORIZED,
            "authentication required: set passwordFile",
        )
    (tmp_path / "password").write_text("password-of-sentinels")
    where["sentinel"] = {"master": "orders", "passwordFile": str(tmp_path / "password")}
    async with open_backend(peer, **where) as opened:
        assert await values(opened, key="jobs") == {("jobs",): 0}


# ---- cluster


class Cluster:
    """A cluster of two masters, each with half of the slots."""

    def __init__(self, folder: Path, password: str) -> None:
        more = ("cluster-enabled yes", "cluster-node-timeout 2000", "cluster-require-full-coverage no")
        self.nodes = [RedisServer(folder / f"{n}", *more, f"cluster-port {free_port()}") for n in range(2)]
        for node in self.nodes:
            node.start()
            node.set_password(password, f"{ACL_RULES} +cluster|slots +asking")
        self.ids = [self.execute(n, "CLUSTER", "MYID").decode() for n in range(2)]
        for number, slots in enumerate(((0, 8191), (8192, 16383))):
            self.execute(number, "CLUSTER", "ADDSLOTSRANGE", *slots)
        bus = [
            line.split()[1] for line in (folder / "1" / "redis.conf").read_text().splitlines() if "cluster-port" in line
        ]
        self.execute(0, "CLUSTER", "MEET", LOOPBACK, self.nodes[1].port, *bus)

    def execute(self, number: int, *command: object) -> Any:
        with self.nodes[number].client() as client:
            return client.execute_command(*command)

    def is_ready(self) -> bool:
        slots = [len(self.execute(number, "CLUSTER", "SLOTS")) for number in range(2)]
        states = [b"cluster_state:ok" in self.execute(number, "CLUSTER", "INFO") for number in range(2)]
        return (slots, states) == ([2, 2], [True, True])

    def add(self, key: str, number: int) -> int:
        """Create a list on the node of its slot and return the number of the node."""
        owner = 0 if key_slot(key.encode()) < 8192 else 1
        with self.nodes[owner].client() as client:
            client.rpush(key, *range(number))
        return owner

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()


@pytest.fixture
async def cluster(peer: Peer, tmp_path: Path) -> Any:
    cluster = await asyncio.to_thread(Cluster, tmp_path, peer.good)
    try:
        for _ in range(600):
            if await asyncio.to_thread(cluster.is_ready):
                break
            await asyncio.sleep(0.05)
        yield cluster
    finally:
        cluster.stop()


async def test_cluster_commands_are_sent_to_the_owner_of_the_slot(peer: Peer, cluster: Cluster) -> None:
    numbers = {f"q:{number}": number for number in range(1, 20)}
    owners = {cluster.add(key, number) for key, number in numbers.items()}
    assert owners == {0, 1}
    unused = f"{LOOPBACK}:{free_port()}"
    async with open_backend(peer, addresses=[unused, *addresses(cluster.nodes[0])], cluster=True) as opened:
        for key, number in numbers.items():
            assert await values(opened, key=key) == {(key,): number}
        assert await values(opened, keys="q:*") == {(key,): number for key, number in numbers.items()}
        assert await values(opened, key="missing") == {("missing",): 0}
        await opened.backend.ping()
    async with open_backend(peer, addresses=addresses(*cluster.nodes), cluster=True, maxKeys=18) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"keys": "q:*"})
        assert caught.value.message == "more keys match the pattern than maxKeys allows"


async def test_cluster_node_without_cluster_setting_is_reported(peer: Peer, cluster: Cluster) -> None:
    key = next(f"q:{number}" for number in range(99) if key_slot(f"q:{number}".encode()) > 8191)
    async with open_backend(peer, addresses=addresses(cluster.nodes[0])) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"key": key})
        assert caught.value.message == "the server is a cluster node: set cluster to true"


async def test_slot_migration_is_followed(peer: Peer, cluster: Cluster) -> None:
    key = next(f"q:{number}" for number in range(99) if key_slot(f"q:{number}".encode()) < 8192)
    slot = key_slot(key.encode())
    cluster.add(key, 3)
    async with open_backend(peer, addresses=addresses(cluster.nodes[0]), cluster=True) as opened:
        assert await values(opened, key=key) == {(key,): 3}
        cluster.execute(1, "CLUSTER", "SETSLOT", slot, "IMPORTING", cluster.ids[0])
        cluster.execute(0, "CLUSTER", "SETSLOT", slot, "MIGRATING", cluster.ids[1])
        assert await values(opened, key=key) == {(key,): 3}
        cluster.execute(0, "MIGRATE", LOOPBACK, cluster.nodes[1].port, key, 0, 5000)
        assert await values(opened, key=key) == {(key,): 3}  # redirected by ASK
        assert await values(opened, keys="q:*") == {(key,): 3}
        for number in (1, 0):
            cluster.execute(number, "CLUSTER", "SETSLOT", slot, "NODE", cluster.ids[1])
        assert await values(opened, key=key) == {(key,): 3}  # redirected by MOVED
        assert await values(opened, key=key) == {(key,): 3}


async def test_lost_node_affects_only_its_keys_and_all_patterns(peer: Peer, cluster: Cluster) -> None:
    numbers = {f"q:{number}": number for number in range(1, 20)}
    owners = {key: cluster.add(key, number) for key, number in numbers.items()}
    async with open_backend(
        peer, addresses=addresses(*cluster.nodes), cluster=True, circuitBreaker={"failureThreshold": 100}
    ) as opened:
        await asyncio.to_thread(cluster.nodes[1].program.kill)
        for key, number in numbers.items():
            if owners[key] == 0:
                assert await values(opened, key=key) == {(key,): number}
            else:
                with pytest.raises(BackendError):
                    await opened.fetch({"key": key})
        with pytest.raises(BackendError):  # a part of the keys would be a wrong result
            await opened.fetch({"keys": "q:*"})


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (b"-MOVED 1 :7000\r\n" * 2, "the cluster redirects to a node without a host name"),
        (b"-MOVED 1 %s\r\n" * 2, "more than 5 redirects for one key: the cluster is inconsistent"),
        (b"-CLUSTERDOWN The cluster is down\r\n" * 2, "the cluster is down"),
    ],
)
async def test_invalid_and_endless_redirects_are_rejected(peer: Peer, response: bytes, message: str) -> None:
    peer.proxy.respond(response.replace(b"%s", peer.proxy.address.encode()))
    async with open_backend(peer, cluster=True, username="", passwordFile="") as opened:
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"key": "jobs"})
        assert (caught.value.failure, caught.value.message) == (FailureClass.REFUSED, message)


@pytest.mark.parametrize(
    "response", [b"+OK\r\n", b"*1\r\n*2\r\n:0\r\n:5\r\n", b"*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$0\r\n\r\n:7\r\n"]
)
async def test_unexpected_reply_to_cluster_slots_is_rejected(peer: Peer, response: bytes) -> None:
    peer.proxy.respond(response)
    async with open_backend(peer, cluster=True, username="", passwordFile="") as opened:
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"keys": "*"})
        assert caught.value.message == "unexpected response format"

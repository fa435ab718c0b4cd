"""Redis of several nodes: what sentinels watch over, through a failover; and a cluster, while a slot moves."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.crc import key_slot

from adapter.errors import BackendError
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.peers.redis import Peer
from tests.backends.redis_server import RIGHTS, RedisServer
from tests.control_plane.cluster import free_port

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="redis")], indirect=True, scope="session"),
]


async def found(opened: Opened, **asked: str) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in await opened.ask(dict(asked))}


async def soon(opened: Opened, expected: object, **asked: str) -> None:
    for _ in range(600):
        try:
            if await found(opened, **asked) == expected:
                return
        except BackendError:
            pass
        await asyncio.sleep(0.05)
    assert await found(opened, **asked) == expected


def at(*servers: RedisServer) -> list[str]:
    return [f"{LOOPBACK}:{server.port}" for server in servers]


# ---- sentinels


class Watched:
    """A master, its replica and one who watches: enough to fail over, because one is the majority of one."""

    def __init__(self, folder: Path, password: str) -> None:
        at_once = "repl-diskless-sync-delay 0"
        self.master = RedisServer(folder / "master", at_once)
        self.replica = RedisServer(folder / "replica", at_once, f"replicaof {LOOPBACK} {self.master.port}")
        for server in (self.master, self.replica):
            server.start()
            server.admit(password)
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

    async def until(self, is_so: Any) -> None:
        def look() -> bool:
            with self.sentinel.client() as client:
                return bool(is_so(client))

        for _ in range(600):
            if await asyncio.to_thread(look):
                return
            await asyncio.sleep(0.05)
        pytest.fail("the sentinel did not get there")


@pytest.fixture
def watched(peer: Peer, tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path, peer.good)
    try:
        yield made
    finally:
        made.stop()


async def test_the_master_is_asked_whichever_node_that_is(peer: Peer, watched: Watched) -> None:
    with watched.master.client() as client:
        client.rpush("jobs", "a", "b")
        assert client.wait(1, 9000) == 1
    await watched.until(lambda sentinel: sentinel.execute_command("SENTINEL", "REPLICAS", "orders"))
    nobody = f"{LOOPBACK}:{free_port()}"
    where = {"addresses": [nobody, *at(watched.sentinel)], "sentinel": {"master": "orders"}}
    async with backend_of(peer, **where) as opened:
        assert await found(opened, key="jobs") == {("jobs",): 2}
        await opened.backend.ping()
        await asyncio.to_thread(watched.master.program.kill)
        with pytest.raises(BackendError) as caught:
            await opened.ask({"key": "jobs"})
        assert caught.value.failure is FailureClass.UNREACHABLE
        await soon(opened, {("jobs",): 2}, key="jobs")
        with watched.replica.client() as client:
            client.rpush("jobs", "c")
        assert await found(opened, key="jobs") == {("jobs",): 3}


async def test_a_master_that_no_sentinel_knows_is_told(peer: Peer, watched: Watched) -> None:
    async with backend_of(peer, addresses=at(watched.sentinel), sentinel={"master": "mails"}) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.ask({"key": "jobs"})
        assert caught.value.message == "the sentinels know no such master"


async def test_sentinels_have_a_password_of_their_own(peer: Peer, watched: Watched, tmp_path: Path) -> None:
    with watched.sentinel.client() as client:
        client.execute_command("ACL", "SETUSER", "default", "resetpass", ">password-of-sentinels")
    where = {"addresses": at(watched.sentinel), "sentinel": {"master": "orders"}}
    async with backend_of(peer, **where) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.ask({"key": "jobs"})
        assert (caught.value.failure, caught.value.message) == (FailureClass.UNAUTHORIZED, "it wants a password")
    (tmp_path / "password").write_text("password-of-sentinels")
    where["sentinel"] = {"master": "orders", "passwordFile": str(tmp_path / "password")}
    async with backend_of(peer, **where) as opened:
        assert await found(opened, key="jobs") == {("jobs",): 0}


# ---- a cluster


class Cluster:
    """Two masters, each with half of the slots."""

    def __init__(self, folder: Path, password: str) -> None:
        more = ("cluster-enabled yes", "cluster-node-timeout 2000", "cluster-require-full-coverage no")
        self.nodes = [RedisServer(folder / f"{n}", *more, f"cluster-port {free_port()}") for n in range(2)]
        for node in self.nodes:
            node.start()
            node.admit(password, f"{RIGHTS} +cluster|slots +asking")
        self.ids = [self.tell(n, "CLUSTER", "MYID").decode() for n in range(2)]
        for number, slots in enumerate(((0, 8191), (8192, 16383))):
            self.tell(number, "CLUSTER", "ADDSLOTSRANGE", *slots)
        bus = [
            line.split()[1] for line in (folder / "1" / "redis.conf").read_text().splitlines() if "cluster-port" in line
        ]
        self.tell(0, "CLUSTER", "MEET", LOOPBACK, self.nodes[1].port, *bus)

    def tell(self, number: int, *words: object) -> Any:
        with self.nodes[number].client() as client:
            return client.execute_command(*words)

    def is_whole(self) -> bool:
        known = [len(self.tell(number, "CLUSTER", "SLOTS")) for number in range(2)]
        states = [b"cluster_state:ok" in self.tell(number, "CLUSTER", "INFO") for number in range(2)]
        return (known, states) == ([2, 2], [True, True])

    def add(self, key: str, number: int) -> int:
        """Put a list where it belongs; say where that is."""
        home = 0 if key_slot(key.encode()) < 8192 else 1
        with self.nodes[home].client() as client:
            client.rpush(key, *range(number))
        return home

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()


@pytest.fixture
async def cluster(peer: Peer, tmp_path: Path) -> Any:
    made = await asyncio.to_thread(Cluster, tmp_path, peer.good)
    try:
        for _ in range(600):
            if await asyncio.to_thread(made.is_whole):
                break
            await asyncio.sleep(0.05)
        yield made
    finally:
        made.stop()


async def test_a_cluster_is_asked_where_the_keys_are(peer: Peer, cluster: Cluster) -> None:
    numbers = {f"q:{number}": number for number in range(1, 20)}
    homes = {cluster.add(key, number) for key, number in numbers.items()}
    assert homes == {0, 1}
    nobody = f"{LOOPBACK}:{free_port()}"
    async with backend_of(peer, addresses=[nobody, *at(cluster.nodes[0])], cluster=True) as opened:
        for key, number in numbers.items():
            assert await found(opened, key=key) == {(key,): number}
        assert await found(opened, keys="q:*") == {(key,): number for key, number in numbers.items()}
        assert await found(opened, key="nobody") == {("nobody",): 0}
        await opened.backend.ping()
    async with backend_of(peer, addresses=at(*cluster.nodes), cluster=True, mostKeys=18) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.ask({"keys": "q:*"})
        assert caught.value.message == "more keys match than mostKeys"


async def test_a_node_of_a_cluster_that_is_not_configured_as_one_says_so(peer: Peer, cluster: Cluster) -> None:
    key = next(f"q:{number}" for number in range(99) if key_slot(f"q:{number}".encode()) > 8191)
    async with backend_of(peer, addresses=at(cluster.nodes[0])) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.ask({"key": key})
        assert caught.value.message == "it is a node of a cluster, and not configured as one"


async def test_a_slot_that_moves_is_followed(peer: Peer, cluster: Cluster) -> None:
    key = next(f"q:{number}" for number in range(99) if key_slot(f"q:{number}".encode()) < 8192)
    slot = key_slot(key.encode())
    cluster.add(key, 3)
    async with backend_of(peer, addresses=at(cluster.nodes[0]), cluster=True) as opened:
        assert await found(opened, key=key) == {(key,): 3}
        cluster.tell(1, "CLUSTER", "SETSLOT", slot, "IMPORTING", cluster.ids[0])
        cluster.tell(0, "CLUSTER", "SETSLOT", slot, "MIGRATING", cluster.ids[1])
        assert await found(opened, key=key) == {(key,): 3}
        cluster.tell(0, "MIGRATE", LOOPBACK, cluster.nodes[1].port, key, 0, 5000)
        assert await found(opened, key=key) == {(key,): 3}  # sent on by ASK
        assert await found(opened, keys="q:*") == {(key,): 3}
        for number in (1, 0):
            cluster.tell(number, "CLUSTER", "SETSLOT", slot, "NODE", cluster.ids[1])
        assert await found(opened, key=key) == {(key,): 3}  # sent on by MOVED
        assert await found(opened, key=key) == {(key,): 3}


async def test_a_cluster_that_lost_a_node_tells_so_of_its_keys_and_no_others(peer: Peer, cluster: Cluster) -> None:
    numbers = {f"q:{number}": number for number in range(1, 20)}
    homes = {key: cluster.add(key, number) for key, number in numbers.items()}
    async with backend_of(peer, addresses=at(*cluster.nodes), cluster=True, breaker={"failures": 100}) as opened:
        await asyncio.to_thread(cluster.nodes[1].program.kill)
        for key, number in numbers.items():
            if homes[key] == 0:
                assert await found(opened, key=key) == {(key,): number}
            else:
                with pytest.raises(BackendError):
                    await opened.ask({"key": key})
        with pytest.raises(BackendError):  # part of them would be a wrong number
            await opened.ask({"keys": "q:*"})


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"-MOVED 1 :7000\r\n" * 2, "its nodes do not say where the key is"),
        (b"-MOVED 1 %s\r\n" * 2, "its nodes do not agree on who has the key"),
        (b"-CLUSTERDOWN The cluster is down\r\n" * 2, "its cluster is down"),
    ],
)
async def test_nodes_that_send_us_nowhere_or_round_and_round_are_refused(peer: Peer, said: bytes, told: str) -> None:
    peer.hop.answer(said.replace(b"%s", peer.hop.address.encode()))
    async with backend_of(peer, cluster=True, username="", passwordFile="") as opened:
        with pytest.raises(BackendError) as caught:
            await opened.ask({"key": "jobs"})
        assert (caught.value.failure, caught.value.message) == (FailureClass.REFUSED, told)


@pytest.mark.parametrize(
    "said", [b"+OK\r\n", b"*1\r\n*2\r\n:0\r\n:5\r\n", b"*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$0\r\n\r\n:7\r\n"]
)
async def test_slots_that_make_no_sense_are_refused(peer: Peer, said: bytes) -> None:
    peer.hop.answer(said)
    async with backend_of(peer, cluster=True, username="", passwordFile="") as opened:
        with pytest.raises(BackendError) as caught:
            await opened.ask({"keys": "*"})
        assert caught.value.message == "it answers, but not as a node of a cluster does"

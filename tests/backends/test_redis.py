"""Tests of the Redis backend beyond the contract of all backends."""

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapter.config.loading import decode
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, configuration_for, open_backend
from tests.backends.contract import Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.peers.redis import Peer
from tests.backends.redis_server import ACL_RULES, RedisServer
from tests.control_plane.certificates import Authority

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="redis")], indirect=True, scope="session"),
]


@pytest.fixture
def client(peer: Peer) -> Iterator[Any]:
    with peer.server.client() as client:
        client.flushall()
        yield client


PERMISSION_DENIED = (FailureClass.UNAUTHORIZED, "permission denied: check the ACL of the user")


async def values(opened: OpenBackend, **parameters: str) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in await opened.fetch(dict(parameters))}


async def failure(opened: OpenBackend, **parameters: str) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.fetch(dict(parameters))
    return caught.value.failure, caught.value.message


async def test_measure_must_match_the_type_of_the_key(peer: Peer, client: Any) -> None:
    client.rpush("list", *range(3))
    client.sadd("set", *range(4))
    client.zadd("scores", {str(number): number for number in range(5)})
    client.hset("hash", mapping={str(number): number for number in range(6)})
    client.xadd("stream", {"a": 1})
    numbers = {
        "listLength": ("list", 3),
        "setSize": ("set", 4),
        "sortedSetSize": ("scores", 5),
        "hashSize": ("hash", 6),
        "streamLength": ("stream", 1),
    }
    async with open_backend(peer) as opened:
        for measure, (key, number) in numbers.items():
            assert await values(opened, key=key, measure=measure) == {(key,): number}
            assert await values(opened, keys="*", measure=measure) == {(key,): number}
            other = "list" if key != "list" else "set"
            assert await failure(opened, key=other, measure=measure) == (
                FailureClass.BAD_QUERY,
                "the type of the key does not match measure",
            )


async def test_missing_list_counts_as_empty_because_redis_deletes_empty_lists(peer: Peer, client: Any) -> None:
    client.rpush("jobs", "one")
    async with open_backend(peer) as opened:
        assert await values(opened, key="jobs") == {("jobs",): 1}
        client.lpop("jobs")
        assert not client.exists("jobs")
        for measure in ("listLength", "setSize", "sortedSetSize", "hashSize"):
            assert await values(opened, key="jobs", measure=measure) == {("jobs",): 0}
            assert await values(opened, key="jobs", measure=measure, missing="none") == {}
            assert await values(opened, keys="*", measure=measure) == {}


async def test_missing_stream_or_group_has_no_series_by_default(peer: Peer, client: Any) -> None:
    client.xdel("orders", client.xadd("orders", {"a": 1}))
    async with open_backend(peer) as opened:
        assert await values(opened, key="orders", measure="streamLength") == {("orders",): 0}
        assert await values(opened, key="none", measure="streamLength") == {}
        assert await values(opened, key="none", measure="streamLength", missing="zero") == {("none",): 0}
        for measure in ("pending", "lag"):
            assert await values(opened, key="none", measure=measure) == {}
            assert await values(opened, key="none", measure=measure, group="g", missing="zero") == {("none", "g"): 0}
            assert await values(opened, key="orders", measure=measure, group="g") == {}
            assert await values(opened, key="orders", measure=measure, group="g", missing="zero") == {
                ("orders", "g"): 0
            }


async def test_pending_and_lag_of_consumer_groups(peer: Peer, client: Any) -> None:
    for group in ("mailers", "größe"):
        client.xgroup_create("orders", group, id="0", mkstream=True)
    added = [client.xadd("orders", {"a": number}) for number in range(5)]
    (taken,) = client.xreadgroup("mailers", "one", {"orders": ">"}, count=3)
    client.xack("orders", "mailers", taken[1][0][0])
    async with open_backend(peer) as opened:
        assert await values(opened, key="orders", measure="pending", group="mailers") == {("orders", "mailers"): 2}
        assert await values(opened, key="orders", measure="lag", group="mailers") == {("orders", "mailers"): 2}
        assert await values(opened, keys="o*", measure="lag") == {("orders", "mailers"): 2, ("orders", "größe"): 5}
        client.xdel("orders", added[3])  # an undelivered message: Redis no longer knows the lag
        lag = (await values(opened, key="orders", measure="lag", group="mailers"))["orders", "mailers"]
        assert math.isnan(lag)
        assert await values(opened, key="orders", measure="pending", group="mailers") == {("orders", "mailers"): 2}


async def test_pattern_matches_more_keys_than_one_scan_and_any_key_name(peer: Peer, client: Any) -> None:
    names = [b"q:a b", "q:größe".encode(), b"q:\xff\x00raw", b"q:*", b"q:{slot}", *(b"q:%d" % n for n in range(700))]
    for name in names:
        client.rpush(name, "x")
    client.rpush("other", "x")
    async with open_backend(peer) as opened:
        assert await values(opened, keys="q:*") == {(name.decode("utf-8", "backslashreplace"),): 1 for name in names}
        assert await values(opened, key="q:größe") == {("q:größe",): 1}
        assert await values(opened, keys=r"q:\*") == {("q:*",): 1}
        assert await values(opened, keys="q:[12]") == {("q:1",): 1, ("q:2",): 1}
    async with open_backend(peer, maxKeys=705) as opened:
        assert len(await values(opened, keys="q:*")) == 705
    async with open_backend(peer, maxKeys=704) as opened:
        assert await failure(opened, keys="q:*") == (
            FailureClass.BAD_QUERY,
            "more keys match the pattern than maxKeys allows",
        )


async def test_database_is_selected(peer: Peer, client: Any) -> None:
    client.rpush("jobs", "a")
    with peer.server.client(db=3) as third:
        third.rpush("jobs", "a", "b")
    peer.server.set_password(peer.good, f"{ACL_RULES} +select")
    async with open_backend(peer) as opened:
        assert await values(opened, key="jobs") == {("jobs",): 1}
    async with open_backend(peer, database=3) as opened:
        assert await values(opened, key="jobs") == {("jobs",): 2}
    async with open_backend(peer, database=99) as opened:
        assert await failure(opened, key="jobs") == (FailureClass.REFUSED, "the server returned an error")
    peer.server.set_password(peer.good, "-select")
    async with open_backend(peer, database=3) as opened:
        assert await failure(opened, key="jobs") == PERMISSION_DENIED


async def test_key_outside_the_acl_of_the_user_is_unauthorized(peer: Peer, client: Any) -> None:
    client.rpush("mine:a", "x")
    client.rpush("theirs:a", "x")
    peer.server.set_password(peer.good, "resetkeys ~mine:*")
    try:
        async with open_backend(peer) as opened:
            assert await values(opened, key="mine:a") == {("mine:a",): 1}
            assert await failure(opened, key="theirs:a") == PERMISSION_DENIED
            assert await values(opened, key="mine:b") == {("mine:b",): 0}
    finally:
        peer.server.set_password(peer.good)


async def test_missing_password_is_unauthorized(peer: Peer, client: Any) -> None:
    client.config_set("requirepass", "secret-of-the-default-user")
    try:
        async with open_backend(peer, username="", passwordFile="") as opened:
            assert await failure(opened, key="jobs") == (
                FailureClass.UNAUTHORIZED,
                "authentication required: set passwordFile",
            )
        (peer.folder / "default").write_text("secret-of-the-default-user")
        async with open_backend(peer, username="", passwordFile=str(peer.folder / "default")) as opened:
            assert await values(opened, key="jobs") == {("jobs",): 0}
    finally:
        client.config_set("requirepass", "")


async def test_reply_to_a_cancelled_query_is_not_used_for_another_query(peer: Peer, client: Any) -> None:
    numbers = {f"jobs{number}": number + 1 for number in range(8)}
    for name, number in numbers.items():
        client.rpush(name, *range(number))
    async with open_backend(peer, maxConnections=2) as opened:
        for _ in range(5):
            peer.proxy.delay(0.05)
            tasks = [asyncio.create_task(opened.fetch({"key": name})) for name in numbers]
            await asyncio.sleep(0.03)
            for task in tasks[::2]:
                task.cancel()
            results = await asyncio.gather(*tasks[1::2])
            assert [sample.value for (sample,) in results] == list(numbers.values())[1::2]
        peer.proxy.forward()
        for name, number in numbers.items():
            assert await values(opened, key=name) == {(name,): number}


async def test_connections_are_reused_up_to_max_connections(peer: Peer, client: Any) -> None:
    client.rpush("jobs", "a")
    before = peer.proxy.connections
    async with open_backend(peer, maxConnections=3) as opened:
        await asyncio.gather(*(opened.fetch({"key": "jobs"}) for _ in range(50)))
        await asyncio.gather(*(opened.fetch({"key": "jobs"}) for _ in range(50)))
    assert 1 <= peer.proxy.connections - before <= 3


async def test_backend_recovers_after_the_server_restarts(peer: Peer, client: Any) -> None:
    client.rpush("jobs", "a")
    async with open_backend(peer) as opened:
        assert await values(opened, key="jobs") == {("jobs",): 1}
        await asyncio.to_thread(peer.server.program.kill)
        for _ in range(2):
            assert (await failure(opened, key="jobs"))[0] is FailureClass.UNREACHABLE
        await asyncio.to_thread(peer.server.program.start)
        await asyncio.to_thread(peer.server.set_password, peer.good)
        assert await values(opened, key="jobs") == {("jobs",): 0}  # the server does not persist its data


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (b"-LOADING Redis is loading the dataset in memory\r\n", "the server is still loading its data"),
        (b"-MASTERDOWN Link with MASTER is down\r\n" * 2, "the replica lost its master"),
        (b"-MOVED 3999 127.0.0.1:6381\r\n" * 2, "the server is a cluster node: set cluster to true"),
        (b"-ERR something new\r\n" * 2, "the server returned an error"),
        (b"-ERR max number of clients reached\r\n", "the server has reached its maximum number of clients"),
        (b":abc\r\n", "unexpected response format"),
        (b"-MOVED\r\n", "unexpected response format"),
        (b"*1\r\n" * 5000, "unexpected response format"),
        (b"$-7\r\n" * 2, "unexpected response format"),
        (b":1\r\n+five\r\n", "unexpected response format"),
        (b":1\r\n*0\r\n", "unexpected response format"),
        (b"x" * 100_000 + b"\r\n", "unexpected response format"),
    ],
)
async def test_unexpected_reply_is_rejected(peer: Peer, response: bytes, message: str) -> None:
    peer.proxy.respond(response)
    async with open_backend(peer, username="", passwordFile="") as opened:
        assert await failure(opened, key="jobs") == (FailureClass.REFUSED, message)


@pytest.mark.parametrize(
    "response",
    [
        b"*2\r\n$1\r\n0\r\n:5\r\n",
        b"*2\r\n$1\r\nx\r\n*0\r\n",
        b"*1\r\n$1\r\n0\r\n",
        b"*2\r\n$1\r\n0\r\n*1\r\n:5\r\n",
        b"+OK\r\n",
    ],
)
async def test_unexpected_reply_to_scan_is_rejected(peer: Peer, response: bytes) -> None:
    peer.proxy.respond(response)
    async with open_backend(peer, username="", passwordFile="") as opened:
        refused = (FailureClass.REFUSED, "unexpected response format")
        assert await failure(opened, keys="*") == refused


@pytest.mark.parametrize(
    "response",
    [b":1\r\n*1\r\n:5\r\n", b":1\r\n*1\r\n*2\r\n:1\r\n:1\r\n", b":1\r\n*1\r\n*2\r\n$4\r\nname\r\n:1\r\n"],
)
async def test_unexpected_reply_to_xinfo_groups_is_rejected(peer: Peer, response: bytes) -> None:
    peer.proxy.respond(response)
    async with open_backend(peer, username="", passwordFile="") as opened:
        refused = (FailureClass.REFUSED, "unexpected response format")
        assert await failure(opened, key="orders", measure="lag") == refused


async def test_lag_is_nan_before_redis_7(peer: Peer) -> None:
    peer.proxy.respond(b":1\r\n*1\r\n*4\r\n$4\r\nname\r\n$1\r\ng\r\n$7\r\npending\r\n:4\r\n")
    async with open_backend(peer, username="", passwordFile="") as opened:
        assert await values(opened, key="orders", measure="pending") == {("orders", "g"): 4}
        assert math.isnan((await values(opened, key="orders", measure="lag"))["orders", "g"])


# ---- TLS


@pytest.fixture
def encrypted(peer: Peer, tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server that requires client certificates."""
    authority = Authority.new("redis")
    certificate, key = authority.server("redis.example").save(tmp_path, "server")
    authority.client("steadyscale").save(tmp_path, "client")
    (tmp_path / "ca.crt").write_text(authority.pem)
    server = RedisServer(tmp_path / "server", "port 0")
    server.stop()
    server = RedisServer(
        tmp_path / "server",
        "port 0",
        f"tls-port {server.port}",
        f"tls-cert-file {certificate}",
        f"tls-key-file {key}",
        f"tls-ca-cert-file {tmp_path / 'ca.crt'}",
        port=server.port,
    )
    client = {"ssl_certfile": str(tmp_path / "client.crt"), "ssl_keyfile": str(tmp_path / "client.key")}
    server.ssl = {"ssl": True, "ssl_ca_certs": str(tmp_path / "ca.crt"), "ssl_check_hostname": False, **client}
    server.start()
    try:
        server.set_password(peer.good)
        yield server
    finally:
        server.stop()


async def test_mutual_tls(peer: Peer, encrypted: RedisServer, tmp_path: Path) -> None:
    files = {"caFile": "ca.crt", "certFile": "client.crt", "keyFile": "client.key"}
    tls = {**{key: str(tmp_path / name) for key, name in files.items()}, "serverName": "redis.example"}
    server = {"addresses": [f"{LOOPBACK}:{encrypted.port}"]}
    async with open_backend(peer, **server, tls=tls) as opened:
        assert await values(opened, key="jobs") == {("jobs",): 0}
    not_accepted = (FailureClass.UNREACHABLE, "TLS handshake failed: certificate not accepted")
    async with open_backend(peer, **server, tls={**tls, "serverName": ""}) as opened:
        assert await failure(opened, key="jobs") == not_accepted
    async with open_backend(peer, **server, tls={**tls, "caFile": ""}) as opened:
        assert await failure(opened, key="jobs") == not_accepted
        assert await failure(opened, key="other") == not_accepted
    async with open_backend(peer, **server, tls={**tls, "caFile": "", "insecureSkipVerify": True}) as opened:
        assert await values(opened, key="jobs") == {("jobs",): 0}
    async with open_backend(peer, **server, tls={**tls, "certFile": str(tmp_path / "gone.crt")}) as opened:
        assert await failure(opened, key="jobs") == (
            FailureClass.UNREACHABLE,
            "TLS files cannot be loaded: check caFile, certFile and keyFile",
        )
    async with open_backend(peer, **server) as opened:
        assert (await failure(opened, key="jobs"))[0] in {FailureClass.UNREACHABLE, FailureClass.REFUSED}


# ---- validation


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"measure": "listLength"}, "key: exactly one of key and keys is required"),
        ({"key": "a", "keys": "b"}, "key: exactly one of key and keys is required"),
        ({"key": "a", "group": "g"}, "group: cannot be used with measure listLength; use pending or lag"),
        ({"keys": "a*", "missing": "zero"}, "missing: cannot be used with keys; a pattern matches existing keys only"),
        (
            {"key": "a", "measure": "lag", "missing": "zero"},
            "missing: zero requires group, because the result needs the label group",
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
        ({"addresses": []}, "addresses: must have at least one address; write host:port"),
        ({"addresses": ["a", "b"]}, "addresses: several addresses require cluster: true or sentinel"),
        ({"addresses": ["redis://a:1"]}, "addresses[0]: not an address; write host:port, without a scheme"),
        ({"addresses": ["a:b"]}, "addresses[0]: not an address; write host:port, without a scheme"),
        ({"addresses": ["me:pw@a"]}, "addresses[0]: must not contain credentials; use username and passwordFile"),
        ({"cluster": True, "sentinel": {"master": "m"}}, "cluster: cannot be combined with sentinel"),
        ({"cluster": True, "database": 1}, "database: must be 0 in a cluster, is 1"),
        ({"database": -1}, "database: must be 0 or more, is -1"),
        ({"passwordFile": ""}, "passwordFile: required with username"),
        ({"sentinel": {"master": ""}}, "sentinel.master: must not be empty"),
        ({"sentinel": {"master": "m", "username": "u"}}, "sentinel.passwordFile: required with username"),
        ({"tls": {"keyFile": "k"}}, "tls.certFile: required with keyFile"),
        ({"maxConnections": 0}, "maxConnections: must be at least 1, is 0"),
        ({"maxKeys": 0}, "maxKeys: must be at least 1, is 0"),
    ],
)
def test_invalid_settings_are_reported(peer: Peer, settings: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, **settings)
    assert caught.value.messages == (f"backends.it.redis.{problem}",)


def test_use_by_objects_requires_a_list_of_namespaces(peer: Peer) -> None:
    entry = {"redis": peer.settings(), "externalMetrics": {}}
    with pytest.raises(ConfigInvalid) as caught:
        decode({"backends": {"it": entry}})
    assert caught.value.messages[0].startswith("backends.it.externalMetrics.namespaces: required")
    entry["externalMetrics"] = {"namespaces": ["shop"]}
    assert decode({"backends": {"it": entry}}).backends["it"].kind == "redis"

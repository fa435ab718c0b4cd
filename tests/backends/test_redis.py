"""What is Redis' own: types, streams and their groups, what is missing, patterns, databases, rights, TLS, answers."""

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapter.config.model import decode
from adapter.errors import BackendError, ConfigInvalid
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of, configured
from tests.backends.contract import Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.peers.redis import Peer
from tests.backends.redis_server import RIGHTS, RedisServer
from tests.control_plane.certificates import Authority

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="redis")], indirect=True, scope="session"),
]


@pytest.fixture
def client(peer: Peer) -> Iterator[Any]:
    with peer.server.client() as made:
        made.flushall()
        yield made


async def found(opened: Opened, **asked: str) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in await opened.ask(dict(asked))}


async def failure(opened: Opened, **asked: str) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.ask(dict(asked))
    return caught.value.failure, caught.value.message


async def test_every_type_is_counted_in_its_own_way_and_no_other(peer: Peer, client: Any) -> None:
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
    async with backend_of(peer) as opened:
        for reads, (key, number) in numbers.items():
            assert await found(opened, key=key, reads=reads) == {(key,): number}
            assert await found(opened, keys="*", reads=reads) == {(key,): number}
            other = "list" if key != "list" else "set"
            assert await failure(opened, key=other, reads=reads) == (
                FailureClass.BAD_QUERY,
                "the key holds something else than the rule reads",
            )


async def test_a_list_that_is_missing_is_an_empty_one_because_redis_has_no_other(peer: Peer, client: Any) -> None:
    client.rpush("jobs", "one")
    async with backend_of(peer) as opened:
        assert await found(opened, key="jobs") == {("jobs",): 1}
        client.lpop("jobs")
        assert not client.exists("jobs")
        for reads in ("listLength", "setSize", "sortedSetSize", "hashSize"):
            assert await found(opened, key="jobs", reads=reads) == {("jobs",): 0}
            assert await found(opened, key="jobs", reads=reads, missing="none") == {}
            assert await found(opened, keys="*", reads=reads) == {}


async def test_a_stream_that_is_missing_is_not_an_empty_one(peer: Peer, client: Any) -> None:
    client.xdel("orders", client.xadd("orders", {"a": 1}))
    async with backend_of(peer) as opened:
        assert await found(opened, key="orders", reads="streamLength") == {("orders",): 0}
        assert await found(opened, key="none", reads="streamLength") == {}
        assert await found(opened, key="none", reads="streamLength", missing="zero") == {("none",): 0}
        for reads in ("pending", "lag"):
            assert await found(opened, key="none", reads=reads) == {}
            assert await found(opened, key="none", reads=reads, group="g", missing="zero") == {("none", "g"): 0}
            assert await found(opened, key="orders", reads=reads, group="g") == {}
            assert await found(opened, key="orders", reads=reads, group="g", missing="zero") == {("orders", "g"): 0}


async def test_a_group_has_what_it_took_and_what_it_has_yet_to_take(peer: Peer, client: Any) -> None:
    for group in ("mailers", "größe"):
        client.xgroup_create("orders", group, id="0", mkstream=True)
    added = [client.xadd("orders", {"a": number}) for number in range(5)]
    (taken,) = client.xreadgroup("mailers", "one", {"orders": ">"}, count=3)
    client.xack("orders", "mailers", taken[1][0][0])
    async with backend_of(peer) as opened:
        assert await found(opened, key="orders", reads="pending", group="mailers") == {("orders", "mailers"): 2}
        assert await found(opened, key="orders", reads="lag", group="mailers") == {("orders", "mailers"): 2}
        assert await found(opened, keys="o*", reads="lag") == {("orders", "mailers"): 2, ("orders", "größe"): 5}
        client.xdel("orders", added[3])  # from among what is not yet delivered: now Redis cannot tell how many are
        lag = (await found(opened, key="orders", reads="lag", group="mailers"))["orders", "mailers"]
        assert math.isnan(lag)
        assert await found(opened, key="orders", reads="pending", group="mailers") == {("orders", "mailers"): 2}


async def test_a_pattern_finds_all_of_many_and_names_of_every_kind(peer: Peer, client: Any) -> None:
    names = [b"q:a b", "q:größe".encode(), b"q:\xff\x00raw", b"q:*", b"q:{slot}", *(b"q:%d" % n for n in range(700))]
    for name in names:
        client.rpush(name, "x")
    client.rpush("other", "x")
    async with backend_of(peer) as opened:
        answer = await found(opened, keys="q:*")
        assert answer == {(name.decode("utf-8", "backslashreplace"),): 1 for name in names}
        assert await found(opened, key="q:größe") == {("q:größe",): 1}
        assert await found(opened, keys=r"q:\*") == {("q:*",): 1}
        assert await found(opened, keys="q:[12]") == {("q:1",): 1, ("q:2",): 1}
    async with backend_of(peer, mostKeys=705) as opened:
        assert len(await found(opened, keys="q:*")) == 705
    async with backend_of(peer, mostKeys=704) as opened:
        assert await failure(opened, keys="q:*") == (FailureClass.BAD_QUERY, "more keys match than mostKeys")


async def test_each_database_has_its_own(peer: Peer, client: Any) -> None:
    client.rpush("jobs", "a")
    with peer.server.client(db=3) as third:
        third.rpush("jobs", "a", "b")
    peer.server.admit(peer.good, f"{RIGHTS} +select")
    async with backend_of(peer) as opened:
        assert await found(opened, key="jobs") == {("jobs",): 1}
    async with backend_of(peer, database=3) as opened:
        assert await found(opened, key="jobs") == {("jobs",): 2}
    async with backend_of(peer, database=99) as opened:
        assert await failure(opened, key="jobs") == (FailureClass.REFUSED, "it answers with an error")
    peer.server.admit(peer.good, "-select")
    async with backend_of(peer, database=3) as opened:
        assert await failure(opened, key="jobs") == (FailureClass.UNAUTHORIZED, "the user may not ask that")


async def test_a_user_sees_only_the_keys_that_are_opened_to_it(peer: Peer, client: Any) -> None:
    client.rpush("mine:a", "x")
    client.rpush("theirs:a", "x")
    peer.server.admit(peer.good, "resetkeys ~mine:*")
    try:
        async with backend_of(peer) as opened:
            assert await found(opened, key="mine:a") == {("mine:a",): 1}
            assert await failure(opened, key="theirs:a") == (FailureClass.UNAUTHORIZED, "the user may not ask that")
            assert await found(opened, key="mine:b") == {("mine:b",): 0}
    finally:
        peer.server.admit(peer.good)


async def test_without_a_password_it_says_that_it_wants_one(peer: Peer, client: Any) -> None:
    client.config_set("requirepass", "secret-of-the-default-user")
    try:
        async with backend_of(peer, username="", passwordFile="") as opened:
            assert await failure(opened, key="jobs") == (FailureClass.UNAUTHORIZED, "it wants a password")
        (peer.folder / "default").write_text("secret-of-the-default-user")
        async with backend_of(peer, username="", passwordFile=str(peer.folder / "default")) as opened:
            assert await found(opened, key="jobs") == {("jobs",): 0}
    finally:
        client.config_set("requirepass", "")


async def test_a_question_that_is_given_up_leaves_its_answer_to_nobody_else(peer: Peer, client: Any) -> None:
    numbers = {f"jobs{number}": number + 1 for number in range(8)}
    for name, number in numbers.items():
        client.rpush(name, *range(number))
    async with backend_of(peer, connections=2) as opened:
        for _ in range(5):
            peer.hop.slow(0.05)
            leaving = [asyncio.create_task(opened.ask({"key": name})) for name in numbers]
            await asyncio.sleep(0.03)
            for each in leaving[::2]:
                each.cancel()
            answers = await asyncio.gather(*leaving[1::2])
            assert [each.value for (each,) in answers] == list(numbers.values())[1::2]
        peer.hop.delegate()
        for name, number in numbers.items():
            assert await found(opened, key=name) == {(name,): number}


async def test_connections_are_kept_and_no_more_than_allowed(peer: Peer, client: Any) -> None:
    client.rpush("jobs", "a")
    before = peer.hop.connections
    async with backend_of(peer, connections=3) as opened:
        await asyncio.gather(*(opened.ask({"key": "jobs"}) for _ in range(50)))
        await asyncio.gather(*(opened.ask({"key": "jobs"}) for _ in range(50)))
    assert 1 <= peer.hop.connections - before <= 3


async def test_a_server_that_is_killed_is_unreachable_and_comes_back(peer: Peer, client: Any) -> None:
    client.rpush("jobs", "a")
    async with backend_of(peer) as opened:
        assert await found(opened, key="jobs") == {("jobs",): 1}
        await asyncio.to_thread(peer.server.program.kill)
        for _ in range(2):
            assert (await failure(opened, key="jobs"))[0] is FailureClass.UNREACHABLE
        await asyncio.to_thread(peer.server.program.start)
        await asyncio.to_thread(peer.server.admit, peer.good)
        assert await found(opened, key="jobs") == {("jobs",): 0}  # it kept nothing, and says so


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"-LOADING Redis is loading the dataset in memory\r\n", "it still loads its data"),
        (b"-MASTERDOWN Link with MASTER is down\r\n" * 2, "it lost its master"),
        (b"-MOVED 3999 127.0.0.1:6381\r\n" * 2, "it is a node of a cluster, and not configured as one"),
        (b"-ERR something new\r\n" * 2, "it answers with an error"),
        (b"-ERR max number of clients reached\r\n", "it has as many clients as it may have"),
        (b":abc\r\n", "it answers, but not as Redis does"),
        (b"-MOVED\r\n", "it answers, but not as Redis does"),
        (b"*1\r\n" * 5000, "it answers, but not as Redis does"),
        (b"$-7\r\n" * 2, "it answers, but not as Redis does"),
        (b":1\r\n+five\r\n", "it answers, but not as Redis does"),
        (b":1\r\n*0\r\n", "it answers, but not as Redis does"),
        (b"x" * 100_000 + b"\r\n", "it answers, but not as Redis does"),
    ],
)
async def test_answers_that_make_no_sense_are_refused(peer: Peer, said: bytes, told: str) -> None:
    peer.hop.answer(said)
    async with backend_of(peer, username="", passwordFile="") as opened:
        assert await failure(opened, key="jobs") == (FailureClass.REFUSED, told)


@pytest.mark.parametrize(
    "said",
    [
        b"*2\r\n$1\r\n0\r\n:5\r\n",
        b"*2\r\n$1\r\nx\r\n*0\r\n",
        b"*1\r\n$1\r\n0\r\n",
        b"*2\r\n$1\r\n0\r\n*1\r\n:5\r\n",
        b"+OK\r\n",
    ],
)
async def test_a_walk_that_makes_no_sense_is_refused(peer: Peer, said: bytes) -> None:
    peer.hop.answer(said)
    async with backend_of(peer, username="", passwordFile="") as opened:
        refused = (FailureClass.REFUSED, "it answers, but not as Redis does")
        assert await failure(opened, keys="*") == refused


@pytest.mark.parametrize(
    "said",
    [b":1\r\n*1\r\n:5\r\n", b":1\r\n*1\r\n*2\r\n:1\r\n:1\r\n", b":1\r\n*1\r\n*2\r\n$4\r\nname\r\n:1\r\n"],
)
async def test_groups_that_make_no_sense_are_refused(peer: Peer, said: bytes) -> None:
    peer.hop.answer(said)
    async with backend_of(peer, username="", passwordFile="") as opened:
        refused = (FailureClass.REFUSED, "it answers, but not as Redis does")
        assert await failure(opened, key="orders", reads="lag") == refused


async def test_a_redis_before_7_has_no_lag_and_that_is_no_zero(peer: Peer) -> None:
    peer.hop.answer(b":1\r\n*1\r\n*4\r\n$4\r\nname\r\n$1\r\ng\r\n$7\r\npending\r\n:4\r\n")
    async with backend_of(peer, username="", passwordFile="") as opened:
        assert await found(opened, key="orders", reads="pending") == {("orders", "g"): 4}
        assert math.isnan((await found(opened, key="orders", reads="lag"))["orders", "g"])


# ---- TLS


@pytest.fixture
def encrypted(peer: Peer, tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that wants to see a certificate, too."""
    authority = Authority.new("redis")
    certificate, key = authority.server("redis.example").save(tmp_path, "server")
    authority.client("us").save(tmp_path, "client")
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
        server.admit(peer.good)
        yield server
    finally:
        server.stop()


async def test_both_sides_show_certificates(peer: Peer, encrypted: RedisServer, tmp_path: Path) -> None:
    files = {"caFile": "ca.crt", "certFile": "client.crt", "keyFile": "client.key"}
    tls = {**{key: str(tmp_path / name) for key, name in files.items()}, "serverName": "redis.example"}
    at = {"addresses": [f"{LOOPBACK}:{encrypted.port}"]}
    async with backend_of(peer, **at, tls=tls) as opened:
        assert await found(opened, key="jobs") == {("jobs",): 0}
    not_accepted = (FailureClass.UNREACHABLE, "its certificate or ours was not accepted")
    async with backend_of(peer, **at, tls={**tls, "serverName": ""}) as opened:
        assert await failure(opened, key="jobs") == not_accepted
    async with backend_of(peer, **at, tls={**tls, "caFile": ""}) as opened:
        assert await failure(opened, key="jobs") == not_accepted
        assert await failure(opened, key="other") == not_accepted
    async with backend_of(peer, **at, tls={**tls, "caFile": "", "insecureSkipVerify": True}) as opened:
        assert await found(opened, key="jobs") == {("jobs",): 0}
    async with backend_of(peer, **at, tls={**tls, "certFile": str(tmp_path / "gone.crt")}) as opened:
        assert await failure(opened, key="jobs") == (FailureClass.UNREACHABLE, "the files of tls cannot be used")
    async with backend_of(peer, **at) as opened:
        assert (await failure(opened, key="jobs"))[0] in {FailureClass.UNREACHABLE, FailureClass.REFUSED}


# ---- what is said of a configuration


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"reads": "listLength"}, "key: either this or keys is needed"),
        ({"key": "a", "keys": "b"}, "key: either this or keys is needed"),
        ({"key": "a", "group": "g"}, "group: only pending and lag are of a group; listLength is not"),
        ({"keys": "a*", "missing": "zero"}, "missing: is for key; a pattern finds only what there is"),
        (
            {"key": "a", "reads": "lag", "missing": "zero"},
            "missing: zero needs group, or nobody knows which group is at zero",
        ),
        ({"key": "a", "reads": "length"}, "reads: invalid enum value 'length'"),
    ],
)
def test_parameters_that_make_no_sense(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, parameters)
    assert caught.value.problems == (f"rules[0].parameters.{problem}",)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"addresses": []}, "addresses: at least one is needed, written host:port"),
        ({"addresses": ["a", "b"]}, "addresses: several are for cluster: true or sentinel; a single Redis has one"),
        ({"addresses": ["redis://a:1"]}, "addresses[0]: not an address; write host:port, without any scheme"),
        ({"addresses": ["a:b"]}, "addresses[0]: not an address; write host:port, without any scheme"),
        ({"addresses": ["me:pw@a"]}, "addresses[0]: holds a user or a password; they have settings of their own"),
        ({"cluster": True, "sentinel": {"master": "m"}}, "cluster: excludes sentinel"),
        ({"cluster": True, "database": 1}, "database: must be 0 in a cluster, is 1"),
        ({"database": -1}, "database: must be 0 or more, is -1"),
        ({"passwordFile": ""}, "passwordFile: is needed with username"),
        ({"sentinel": {"master": ""}}, "sentinel.master: must not be empty"),
        ({"sentinel": {"master": "m", "username": "u"}}, "sentinel.passwordFile: is needed with username"),
        ({"tls": {"keyFile": "k"}}, "tls.certFile: is needed with keyFile"),
        ({"connections": 0}, "connections: must be at least 1, is 0"),
        ({"mostKeys": 0}, "mostKeys: must be at least 1, is 0"),
    ],
)
def test_settings_that_make_no_sense(peer: Peer, settings: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, **settings)
    assert caught.value.problems == (f"backends.it.redis.{problem}",)


def test_teams_may_use_it_only_where_the_operator_names_them(peer: Peer) -> None:
    entry = {"redis": peer.settings(), "externalMetrics": {}}
    with pytest.raises(ConfigInvalid) as caught:
        decode({"backends": {"it": entry}})
    assert caught.value.problems[0].startswith("backends.it.externalMetrics.namespaces: is needed")
    entry["externalMetrics"] = {"namespaces": ["shop"]}
    assert decode({"backends": {"it": entry}}).backends["it"].kind == "redis"

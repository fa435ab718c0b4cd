"""What is NATS' own: consumers, pages, ways to show who we are, domains, rights, TLS, connections that go bad."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapter.errors import BackendError, ConfigInvalid
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of, configured
from tests.backends.contract import Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.nats_keys import Key, creds
from tests.backends.nats_server import RIGHTS, Admin, NatsServer
from tests.backends.peers.nats import Peer
from tests.control_plane.certificates import Authority
from tests.control_plane.cluster import free_port

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="nats")], indirect=True, scope="session"),
]
Started = Callable[..., NatsServer]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Start more servers, with other settings."""
    running: list[NatsServer] = []

    def start(users: str = "", more: str = "") -> NatsServer:
        server = NatsServer(tmp_path / f"server{len(running)}", users, more)
        server.start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.stop()


async def found(opened: Opened, **asked: str) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in await opened.ask(dict(asked))}


async def failure(opened: Opened, seconds: float | None = None, **asked: str) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.ask(dict(asked), seconds)
    return caught.value.failure, caught.value.message


def at(*servers: NatsServer) -> Json:
    return {"addresses": [f"{LOOPBACK}:{server.port}" for server in servers]}


NOBODY = {"username": "", "passwordFile": ""}


# ---- consumers


async def test_a_consumer_has_what_is_not_delivered_and_what_is_not_acknowledged(peer: Peer) -> None:
    peer.hold({"orders": 7})

    def take() -> None:
        async def work() -> None:
            subscription = await peer.admin.js.pull_subscribe("in.orders", durable="mailers")
            messages = await subscription.fetch(3, timeout=5)
            await messages[0].ack_sync(timeout=5)
            await subscription.unsubscribe()

        peer.admin.do(work())

    await asyncio.to_thread(take)
    async with backend_of(peer) as opened:
        asked = {"stream": "orders", "consumer": "mailers"}
        assert await found(opened, **asked) == {("orders", "mailers"): 6}
        assert await found(opened, **asked, reads="lag") == {("orders", "mailers"): 6}
        assert await found(opened, **asked, reads="pending") == {("orders", "mailers"): 4}
        assert await found(opened, **asked, reads="ackPending") == {("orders", "mailers"): 2}
        assert await found(opened, stream="orders", reads="messages") == {("orders",): 7}
        assert await found(opened, stream="orders", consumer="nobody") == {}
        assert await found(opened, stream="nobody", consumer="nobody") == {}
        assert await found(opened, stream="nobody") == {}


async def test_all_consumers_are_found_on_all_pages(peer: Peer) -> None:
    peer.hold({"orders": 2})
    names = [f"größe{number}" for number in range(300)]  # NATS gives 256 at a time

    async def add() -> None:
        for name in names:
            await peer.admin.js.add_consumer("orders", durable_name=name, ack_policy="explicit", mem_storage=True)

    await asyncio.to_thread(lambda: peer.admin.do(add()))
    async with backend_of(peer) as opened:
        assert await found(opened, stream="orders") == {("orders", name): 2 for name in names}


# ---- who we are


async def test_a_token_is_shown(peer: Peer, started: Started, tmp_path: Path) -> None:
    server = started(more="authorization { token: token-of-ours }")
    token = tmp_path / "token"
    token.write_text("token-of-ours\n")
    async with backend_of(peer, **at(server), **NOBODY, tokenFile=str(token)) as opened:
        assert await found(opened, reads="messages") == {}
        await opened.backend.ping()
    token.write_text("another")
    async with backend_of(peer, **at(server), **NOBODY, tokenFile=str(token)) as opened:
        not_believed = (FailureClass.UNAUTHORIZED, "it does not believe our credentials")
        assert await failure(opened, reads="messages") == not_believed
    async with backend_of(peer, **at(server), **NOBODY) as opened:
        assert await failure(opened, reads="messages") == not_believed


async def test_an_nkey_proves_who_we_are(peer: Peer, started: Started, tmp_path: Path) -> None:
    key = Key("user")
    server = started(f"{{ nkey: {key.public}, permissions: {RIGHTS} }}")
    seed = tmp_path / "seed"
    seed.write_text(f"{key.seed}\n")
    async with backend_of(peer, **at(server), **NOBODY, nkeyFile=str(seed)) as opened:
        assert await found(opened, reads="messages") == {}
    seed.write_text(Key("user").seed)
    async with backend_of(peer, **at(server), **NOBODY, nkeyFile=str(seed)) as opened:
        not_believed = (FailureClass.UNAUTHORIZED, "it does not believe our credentials")
        assert await failure(opened, reads="messages") == not_believed


async def test_credentials_hold_a_jwt_and_the_key_to_it(peer: Peer, started: Started, tmp_path: Path) -> None:
    operator, system, account, user = (Key(kind) for kind in ("operator", "account", "account", "user"))
    (tmp_path / "operator.jwt").write_text(operator.vouch(operator))
    preloaded = f"{system.public}: {operator.vouch(system, stores=False)}, {account.public}: {operator.vouch(account)}"
    server = started(
        more=f"operator: {tmp_path / 'operator.jwt'}\nsystem_account: {system.public}\nresolver: MEMORY\n"
        f"resolver_preload: {{ {preloaded} }}\n# no authorization beside accounts"
    )
    file = tmp_path / "user.creds"
    file.write_text(creds(account.vouch(user), user.seed))
    async with backend_of(peer, **at(server), **NOBODY, credentialsFile=str(file)) as opened:
        assert await found(opened, reads="messages") == {}
    not_believed = (FailureClass.UNAUTHORIZED, "it does not believe our credentials")
    file.write_text(creds(account.vouch(user), Key("user").seed))
    async with backend_of(peer, **at(server), **NOBODY, credentialsFile=str(file)) as opened:
        assert await failure(opened, reads="messages") == not_believed
        file.write_text(creds(account.vouch(user), user.seed))
        assert await found(opened, reads="messages") == {}


async def test_no_part_of_credentials_is_told(peer: Peer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    user = Key("user")
    jwt = Key("account").vouch(user)
    file = tmp_path / "user.creds"
    file.write_text(creds(jwt, user.seed))
    peer.hop.answer(f'INFO {{"nonce":"abc","auth_required":true}}\r\n-ERR \'no {jwt} or {user.seed}\'\r\n'.encode())
    async with backend_of(peer, **NOBODY, credentialsFile=str(file)) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.ask({"reads": "messages"})
        told = [caught.value.message, caught.value.detail, repr(opened.backend), caplog.text]
    assert not [text for text in told if jwt in text or user.seed in text]


# ---- what the user may, and where JetStream is


async def test_what_the_user_may_not_ask_is_told_at_once(peer: Peer, started: Started) -> None:
    rights = '{ publish: "$JS.API.STREAM.INFO.orders", subscribe: "_INBOX.>" }'
    server = started(f"{{ user: reader, password: {peer.good}, permissions: {rights} }}")
    may_not = (FailureClass.UNAUTHORIZED, "the user may not ask that")
    async with backend_of(peer, **at(server)) as opened:
        asking = [opened.ask({"stream": name, "reads": "messages"}) for name in ("orders", "Mails")]
        orders, mails = await asyncio.gather(*asking, return_exceptions=True)
        assert orders == ()
        assert isinstance(mails, BackendError)
        assert (mails.failure, mails.message) == may_not
        assert await failure(opened, reads="messages") == may_not


async def test_answers_come_where_the_user_may_listen(peer: Peer, started: Started) -> None:
    rights = '{ publish: "$JS.API.STREAM.>", subscribe: "mine.inbox.>" }'
    server = started(f"{{ user: reader, password: {peer.good}, permissions: {rights} }}")
    async with backend_of(peer, **at(server)) as opened:
        may_not = (FailureClass.UNAUTHORIZED, "the user may not ask that")
        assert await failure(opened, reads="messages") == may_not
    async with backend_of(peer, **at(server), inboxPrefix="mine.inbox") as opened:
        assert await found(opened, reads="messages") == {}


async def test_a_domain_is_asked_by_its_name(peer: Peer, tmp_path: Path) -> None:
    user = f"{{ user: reader, password: {peer.good}, permissions: {RIGHTS.replace('$JS.API.STREAM.INFO.*', 'none')} }}"
    server = NatsServer(tmp_path / "shop", user)
    config = server.folder / "nats.conf"
    config.write_text(config.read_text().replace("store_dir", "domain: shop, store_dir"))
    server.start()
    admin = Admin(server)
    try:
        await asyncio.to_thread(admin.connect)
        await asyncio.to_thread(admin.hold, {"orders": 2})
        for more in ({"domain": "shop"}, {"apiPrefix": "$JS.shop.API"}):
            async with backend_of(peer, **at(server), **more) as opened:
                assert await found(opened, reads="messages") == {("orders",): 2}
                may_not = (FailureClass.UNAUTHORIZED, "the user may not ask that")
                assert await failure(opened, stream="orders", reads="messages") == may_not
    finally:
        admin.close()
        server.stop()


async def test_an_account_without_jetstream_says_so(peer: Peer, started: Started) -> None:
    def accounts(jetstream: str) -> str:
        user = f"{{ user: reader, password: {peer.good} }}"
        return f"accounts: {{ plain: {{ {jetstream} users: [{user}] }} }}"

    async with backend_of(peer, **at(started(more=accounts("")))) as opened:
        assert await failure(opened, reads="messages") == (
            FailureClass.REFUSED,
            "JetStream is not enabled for this account",
        )
    async with backend_of(peer, **at(started(more=accounts("jetstream: enabled,")))) as opened:
        assert await found(opened, reads="messages") == {}
    async with backend_of(peer, **at(started(more=accounts("jetstream: enabled,"))), domain="nowhere") as opened:
        assert await failure(opened, reads="messages") == (
            FailureClass.REFUSED,
            "nobody answers for JetStream: it is not enabled there, or the domain is another",
        )


# ---- TLS


@pytest.fixture
def encrypted(peer: Peer, started: Started, tmp_path: Path) -> NatsServer:
    """A NATS that wants to see a certificate, too."""
    authority = Authority.new("nats")
    certificate, key = authority.server("nats.example").save(tmp_path, "server")
    authority.client("us").save(tmp_path, "client")
    (tmp_path / "ca.crt").write_text(authority.pem)
    files = f"cert_file: {certificate}, key_file: {key}, ca_file: {tmp_path / 'ca.crt'}, verify: true"
    return started(peer._user(peer.good), f"tls {{ {files} }}")


async def test_both_sides_show_certificates(peer: Peer, encrypted: NatsServer, tmp_path: Path) -> None:
    files = {"caFile": "ca.crt", "certFile": "client.crt", "keyFile": "client.key"}
    tls = {**{key: str(tmp_path / name) for key, name in files.items()}, "serverName": "nats.example"}
    async with backend_of(peer, **at(encrypted), tls=tls) as opened:
        assert await found(opened, reads="messages") == {}
    not_accepted = (FailureClass.UNREACHABLE, "its certificate or ours was not accepted")
    for wrong in ({"serverName": ""}, {"caFile": ""}):
        async with backend_of(peer, **at(encrypted), tls={**tls, **wrong}) as opened:
            assert await failure(opened, reads="messages") == not_accepted
    async with backend_of(peer, **at(encrypted)) as opened:  # the server asks for encryption, so it is tried
        assert await failure(opened, reads="messages") == not_accepted


async def test_nothing_is_shown_to_who_does_not_encrypt(peer: Peer) -> None:
    peer.hold({})
    async with backend_of(peer, tls={}) as opened:
        assert await failure(opened, reads="messages") == (
            FailureClass.UNREACHABLE,
            "it does not encrypt, and tls is set",
        )


# ---- connections


async def test_one_connection_is_shared_and_kept(peer: Peer) -> None:
    peer.hold({"orders": 1})
    before = peer.hop.connections
    async with backend_of(peer) as opened:
        for _ in range(3):
            await asyncio.gather(*(opened.ask({"stream": "orders", "reads": "messages"}) for _ in range(40)))
    assert peer.hop.connections - before == 1


async def test_one_that_answered_nobody_is_replaced_for_the_next_and_kept_for_who_is_on_it(peer: Peer) -> None:
    peer.hold({"orders": 1})
    asked = {"stream": "orders", "reads": "messages"}
    async with backend_of(peer) as opened:
        await opened.ask(asked)
        peer.hop.slow(0.6)
        before = peer.hop.connections
        patient = asyncio.create_task(opened.ask(asked, 5))
        assert (await failure(opened, 0.3, **asked))[0] is FailureClass.TIMED_OUT
        (late,) = await patient
        assert late.value == 1
        peer.hop.delegate()
        assert await found(opened, **asked) == {("orders",): 1}
        assert peer.hop.connections - before == 1


async def test_a_server_that_is_killed_is_unreachable_and_comes_back(peer: Peer, started: Started) -> None:
    server = started(peer._user(peer.good))
    async with backend_of(peer, **at(server)) as opened:
        assert await found(opened, reads="messages") == {}
        await asyncio.to_thread(server.program.kill)
        for _ in range(2):
            assert (await failure(opened, reads="messages"))[0] is FailureClass.UNREACHABLE
        await asyncio.to_thread(server.program.start)
        assert await found(opened, reads="messages") == {}


async def test_another_server_is_taken_if_the_first_is_not_there(peer: Peer) -> None:
    peer.hold({"orders": 1})
    addresses = [f"{LOOPBACK}:{free_port()}", peer.hop.address]
    async with backend_of(peer, addresses=addresses) as opened:
        assert await found(opened, reads="messages") == {("orders",): 1}
    async with backend_of(peer, addresses=[f"{LOOPBACK}:{free_port()}"]) as opened:
        assert await failure(opened, reads="messages") == (FailureClass.UNREACHABLE, "connection refused")


async def test_a_server_that_is_full_is_told_so(peer: Peer, started: Started) -> None:
    server = started(peer._user(peer.good), "max_connections: 1")
    async with backend_of(peer, **at(server)) as first, backend_of(peer, **at(server)) as second:
        assert await found(first, reads="messages") == {}
        assert await failure(second, reads="messages") in {
            (FailureClass.REFUSED, "it has as many clients as it may have"),
            (FailureClass.UNREACHABLE, "the connection broke"),  # it hangs up as it says so, and that may be all we see
        }
        assert await found(first, reads="messages") == {}


@pytest.mark.parametrize(
    "greeting",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"INFO nonsense\r\n", b"INFO []\r\n", b"+OK\r\n", b"INFO {}\r\nnonsense\r\n"],
)
async def test_who_does_not_greet_as_nats_does_is_refused(peer: Peer, greeting: bytes) -> None:
    peer.hop.answer(greeting)
    async with backend_of(peer) as opened:
        kind, words = await failure(opened, 2, reads="messages")
        assert (kind, words) == (FailureClass.REFUSED, "it answers, but not as NATS does")


# ---- what is said of a configuration


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"reads": "lag"}, "stream: is needed with lag: consumers are of a stream"),
        (
            {"stream": "a.b"},
            "stream: cannot be a name in JetStream; those have no spaces, dots, slashes, * or >",
        ),
        (
            {"stream": "a", "consumer": "*"},
            "consumer: cannot be a name in JetStream; those have no spaces, dots, slashes, * or >",
        ),
        (
            {"stream": "a", "consumer": "b", "reads": "messages"},
            "consumer: messages are of the stream; of a consumer there are lag, pending and ackPending",
        ),
        ({"stream": "a", "reads": "length"}, "reads: invalid enum value 'length'"),
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
        ({"addresses": ["nats://a"]}, "addresses[0]: not an address; write host:port, without any scheme"),
        ({"tokenFile": "t"}, "tokenFile: excludes passwordFile"),
        ({"passwordFile": ""}, "passwordFile: is needed with the other of the two"),
        ({"username": ""}, "username: is needed with the other of the two"),
        ({"domain": "a.b"}, "domain: must be one word without dots, * or >"),
        ({"domain": "a", "apiPrefix": "b"}, "apiPrefix: excludes domain"),
        ({"apiPrefix": "a."}, "apiPrefix: must be words with dots between them, without spaces, * or >"),
        ({"inboxPrefix": ""}, "inboxPrefix: must be words with dots between them, without spaces, * or >"),
        ({"tls": {"keyFile": "k"}}, "tls.certFile: is needed with keyFile"),
        ({"breaker": {"failures": 0}}, "breaker.failures: must be at least 1, is 0"),
    ],
)
def test_settings_that_make_no_sense(peer: Peer, settings: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, **settings)
    assert caught.value.problems == (f"backends.it.nats.{problem}",)

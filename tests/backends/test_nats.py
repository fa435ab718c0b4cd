"""Tests of the NATS backend beyond the contract of all backends."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, configuration_for, open_backend
from tests.backends.contract import Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.backends.nats_keys import Key, creds
from tests.backends.nats_server import PERMISSIONS, Admin, NatsServer
from tests.backends.peers.nats import Peer
from tests.control_plane.certificates import Authority
from tests.control_plane.cluster import free_port
from tests.waiting import GIVE_UP

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="nats")], indirect=True, scope="session"),
]
Started = Callable[..., NatsServer]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Start additional servers with other settings."""
    running: list[NatsServer] = []

    def start(users: str = "", more: str = "") -> NatsServer:
        server = NatsServer(tmp_path / f"server{len(running)}", users, more)
        server.start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.stop()


async def values(opened: OpenBackend, **parameters: str) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in await opened.fetch(dict(parameters))}


async def failure(opened: OpenBackend, seconds: float | None = None, **parameters: str) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.fetch(dict(parameters), seconds)
    return caught.value.failure, caught.value.message


def addresses(*servers: NatsServer) -> Json:
    return {"addresses": [f"{LOOPBACK}:{server.port}" for server in servers]}


NO_USER = {"username": "", "passwordFile": ""}


# ---- consumers


async def test_lag_pending_and_ack_pending_of_a_consumer(peer: Peer) -> None:
    peer.set_values({"orders": 7})

    def consume() -> None:
        async def work() -> None:
            subscription = await peer.admin.js.pull_subscribe("in.orders", durable="mailers")
            messages = await subscription.fetch(3, timeout=GIVE_UP)
            await messages[0].ack_sync(timeout=GIVE_UP)
            await subscription.unsubscribe()

        peer.admin.do(work())

    await asyncio.to_thread(consume)
    async with open_backend(peer) as opened:
        parameters = {"stream": "orders", "consumer": "mailers"}
        assert await values(opened, **parameters) == {("orders", "mailers"): 6}
        assert await values(opened, **parameters, measure="lag") == {("orders", "mailers"): 6}
        assert await values(opened, **parameters, measure="pending") == {("orders", "mailers"): 4}
        assert await values(opened, **parameters, measure="ackPending") == {("orders", "mailers"): 2}
        assert await values(opened, stream="orders", measure="messages") == {("orders",): 7}
        assert await values(opened, stream="orders", consumer="missing") == {}
        assert await values(opened, stream="missing", consumer="missing") == {}
        assert await values(opened, stream="missing") == {}


async def test_consumers_of_all_pages_are_read(peer: Peer) -> None:
    peer.set_values({"orders": 2})
    names = [f"größe{number}" for number in range(300)]  # NATS returns 256 per page

    async def add() -> None:
        for name in names:
            await peer.admin.js.add_consumer("orders", durable_name=name, ack_policy="explicit", mem_storage=True)

    await asyncio.to_thread(lambda: peer.admin.do(add()))
    async with open_backend(peer) as opened:
        assert await values(opened, stream="orders") == {("orders", name): 2 for name in names}


# ---- authentication


async def test_token_authentication(peer: Peer, started: Started, tmp_path: Path) -> None:
    server = started(more="authorization { token: first-token }")
    token = tmp_path / "token"
    token.write_text("first-token\n")
    async with open_backend(peer, **addresses(server), **NO_USER, tokenFile=str(token)) as opened:
        assert await values(opened, measure="messages") == {}
        await opened.backend.ping()
    token.write_text("wrong-token")
    async with open_backend(peer, **addresses(server), **NO_USER, tokenFile=str(token)) as opened:
        login_failed = (FailureClass.UNAUTHORIZED, "authentication failed: check the credentials")
        assert await failure(opened, measure="messages") == login_failed
    async with open_backend(peer, **addresses(server), **NO_USER) as opened:
        assert await failure(opened, measure="messages") == login_failed


async def test_nkey_authentication(peer: Peer, started: Started, tmp_path: Path) -> None:
    key = Key("user")
    server = started(f"{{ nkey: {key.public}, permissions: {PERMISSIONS} }}")
    seed = tmp_path / "seed"
    seed.write_text(f"{key.seed}\n")
    async with open_backend(peer, **addresses(server), **NO_USER, nkeyFile=str(seed)) as opened:
        assert await values(opened, measure="messages") == {}
    seed.write_text(Key("user").seed)
    async with open_backend(peer, **addresses(server), **NO_USER, nkeyFile=str(seed)) as opened:
        login_failed = (FailureClass.UNAUTHORIZED, "authentication failed: check the credentials")
        assert await failure(opened, measure="messages") == login_failed


async def test_credentials_file_authentication(peer: Peer, started: Started, tmp_path: Path) -> None:
    operator, system, account, user = (Key(kind) for kind in ("operator", "account", "account", "user"))
    (tmp_path / "operator.jwt").write_text(operator.issue(operator))
    preloaded = (
        f"{system.public}: {operator.issue(system, has_jetstream=False)}, {account.public}: {operator.issue(account)}"
    )
    server = started(
        more=f"operator: {tmp_path / 'operator.jwt'}\nsystem_account: {system.public}\nresolver: MEMORY\n"
        f"resolver_preload: {{ {preloaded} }}\n# no authorization beside accounts"
    )
    file = tmp_path / "user.creds"
    file.write_text(creds(account.issue(user), user.seed))
    async with open_backend(peer, **addresses(server), **NO_USER, credentialsFile=str(file)) as opened:
        assert await values(opened, measure="messages") == {}
    login_failed = (FailureClass.UNAUTHORIZED, "authentication failed: check the credentials")
    file.write_text(creds(account.issue(user), Key("user").seed))
    async with open_backend(peer, **addresses(server), **NO_USER, credentialsFile=str(file)) as opened:
        assert await failure(opened, measure="messages") == login_failed
        file.write_text(creds(account.issue(user), user.seed))
        assert await values(opened, measure="messages") == {}


async def test_credentials_do_not_appear_in_errors_and_logs(
    peer: Peer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    user = Key("user")
    jwt = Key("account").issue(user)
    file = tmp_path / "user.creds"
    file.write_text(creds(jwt, user.seed))
    peer.proxy.respond(f'INFO {{"nonce":"abc","auth_required":true}}\r\n-ERR \'no {jwt} or {user.seed}\'\r\n'.encode())
    async with open_backend(peer, **NO_USER, credentialsFile=str(file)) as opened:
        with pytest.raises(BackendError) as caught:
            await opened.fetch({"measure": "messages"})
        texts = [caught.value.message, caught.value.detail, repr(opened.backend), caplog.text]
    assert not [text for text in texts if jwt in text or user.seed in text]


# ---- permissions and JetStream domains


async def test_missing_permission_is_reported_immediately(peer: Peer, started: Started) -> None:
    rights = '{ publish: "$JS.API.STREAM.INFO.orders", subscribe: "_INBOX.>" }'
    server = started(f"{{ user: reader, password: {peer.good}, permissions: {rights} }}")
    permission_denied = (FailureClass.UNAUTHORIZED, "permission denied: the user may not use the JetStream API")
    async with open_backend(peer, **addresses(server)) as opened:
        requests = [opened.fetch({"stream": name, "measure": "messages"}) for name in ("orders", "Mails")]
        orders, mails = await asyncio.gather(*requests, return_exceptions=True)
        assert orders == ()
        assert isinstance(mails, BackendError)
        assert (mails.failure, mails.message) == permission_denied
        assert await failure(opened, measure="messages") == permission_denied


async def test_responses_use_the_inbox_prefix(peer: Peer, started: Started) -> None:
    rights = '{ publish: "$JS.API.STREAM.>", subscribe: "mine.inbox.>" }'
    server = started(f"{{ user: reader, password: {peer.good}, permissions: {rights} }}")
    async with open_backend(peer, **addresses(server)) as opened:
        permission_denied = (FailureClass.UNAUTHORIZED, "permission denied: the user may not use the JetStream API")
        assert await failure(opened, measure="messages") == permission_denied
    async with open_backend(peer, **addresses(server), inboxPrefix="mine.inbox") as opened:
        assert await values(opened, measure="messages") == {}


async def test_domain_and_api_prefix_select_the_jetstream_domain(peer: Peer, tmp_path: Path) -> None:
    permissions = PERMISSIONS.replace("$JS.API.STREAM.INFO.*", "none")
    user = f"{{ user: reader, password: {peer.good}, permissions: {permissions} }}"
    server = NatsServer(tmp_path / "shop", user)
    config = server.folder / "nats.conf"
    config.write_text(config.read_text().replace("store_dir", "domain: shop, store_dir"))
    server.start()
    admin = Admin(server)
    try:
        await asyncio.to_thread(admin.connect)
        await asyncio.to_thread(admin.set_values, {"orders": 2})
        for more in ({"domain": "shop"}, {"apiPrefix": "$JS.shop.API"}):
            async with open_backend(peer, **addresses(server), **more) as opened:
                assert await values(opened, measure="messages") == {("orders",): 2}
                permission_denied = (
                    FailureClass.UNAUTHORIZED,
                    "permission denied: the user may not use the JetStream API",
                )
                assert await failure(opened, stream="orders", measure="messages") == permission_denied
    finally:
        admin.close()
        server.stop()


async def test_account_without_jetstream_is_reported(peer: Peer, started: Started) -> None:
    def accounts(jetstream: str) -> str:
        user = f"{{ user: reader, password: {peer.good} }}"
        return f"accounts: {{ plain: {{ {jetstream} users: [{user}] }} }}"

    async with open_backend(peer, **addresses(started(more=accounts("")))) as opened:
        assert await failure(opened, measure="messages") == (
            FailureClass.REFUSED,
            "JetStream is not enabled for this account",
        )
    async with open_backend(peer, **addresses(started(more=accounts("jetstream: enabled,")))) as opened:
        assert await values(opened, measure="messages") == {}
    async with open_backend(
        peer, **addresses(started(more=accounts("jetstream: enabled,"))), domain="nowhere"
    ) as opened:
        assert await failure(opened, measure="messages") == (
            FailureClass.REFUSED,
            "JetStream does not respond: it is not enabled, or domain or apiPrefix is wrong",
        )


# ---- TLS


@pytest.fixture
def encrypted(peer: Peer, started: Started, tmp_path: Path) -> NatsServer:
    """A NATS server that requires client certificates."""
    authority = Authority.new("nats")
    certificate, key = authority.server("nats.example").save(tmp_path, "server")
    authority.client("steadyscale").save(tmp_path, "client")
    (tmp_path / "ca.crt").write_text(authority.pem)
    files = f"cert_file: {certificate}, key_file: {key}, ca_file: {tmp_path / 'ca.crt'}, verify: true"
    return started(peer._user(peer.good), f"tls {{ {files} }}")


async def test_mutual_tls(peer: Peer, encrypted: NatsServer, tmp_path: Path) -> None:
    files = {"caFile": "ca.crt", "certFile": "client.crt", "keyFile": "client.key"}
    tls = {**{key: str(tmp_path / name) for key, name in files.items()}, "serverName": "nats.example"}
    async with open_backend(peer, **addresses(encrypted), tls=tls) as opened:
        assert await values(opened, measure="messages") == {}
    not_accepted = (FailureClass.UNREACHABLE, "TLS handshake failed: certificate not accepted")
    for wrong in ({"serverName": ""}, {"caFile": ""}):
        async with open_backend(peer, **addresses(encrypted), tls={**tls, **wrong}) as opened:
            assert await failure(opened, measure="messages") == not_accepted
    async with open_backend(peer, **addresses(encrypted)) as opened:  # the server requires TLS, so it is used
        assert await failure(opened, measure="messages") == not_accepted


async def test_no_credentials_are_sent_without_tls_if_tls_is_set(peer: Peer) -> None:
    peer.set_values({})
    async with open_backend(peer, tls={}) as opened:
        assert await failure(opened, measure="messages") == (
            FailureClass.UNREACHABLE,
            "the server does not use TLS, but tls is set",
        )


# ---- connections


async def test_one_connection_is_shared_and_reused(peer: Peer) -> None:
    peer.set_values({"orders": 1})
    before = peer.proxy.connections
    async with open_backend(peer) as opened:
        for _ in range(3):
            await asyncio.gather(*(opened.fetch({"stream": "orders", "measure": "messages"}) for _ in range(40)))
    assert peer.proxy.connections - before == 1


async def test_connection_is_replaced_after_a_timeout_and_kept_for_pending_requests(peer: Peer) -> None:
    peer.set_values({"orders": 1})
    parameters = {"stream": "orders", "measure": "messages"}
    async with open_backend(peer) as opened:
        await opened.fetch(parameters)
        peer.proxy.delay(0.6)
        before = peer.proxy.connections
        patient = asyncio.create_task(opened.fetch(parameters, 5))
        assert (await failure(opened, 0.3, **parameters))[0] is FailureClass.TIMED_OUT
        (late,) = await patient
        assert late.value == 1
        peer.proxy.forward()
        assert await values(opened, **parameters) == {("orders",): 1}
        assert peer.proxy.connections - before == 1


async def test_backend_recovers_after_the_server_restarts(peer: Peer, started: Started) -> None:
    server = started(peer._user(peer.good))
    async with open_backend(peer, **addresses(server)) as opened:
        assert await values(opened, measure="messages") == {}
        await asyncio.to_thread(server.program.kill)
        for _ in range(2):
            assert (await failure(opened, measure="messages"))[0] is FailureClass.UNREACHABLE
        await asyncio.to_thread(server.program.start)
        assert await values(opened, measure="messages") == {}


async def test_next_server_is_used_if_the_first_is_unreachable(peer: Peer) -> None:
    peer.set_values({"orders": 1})
    unused = f"{LOOPBACK}:{free_port()}"
    async with open_backend(peer, addresses=[unused, peer.proxy.address]) as opened:
        assert await values(opened, measure="messages") == {("orders",): 1}
    async with open_backend(peer, addresses=[unused]) as opened:
        assert await failure(opened, measure="messages") == (FailureClass.UNREACHABLE, "connection refused")


async def test_maximum_number_of_connections_is_reported(peer: Peer, started: Started) -> None:
    server = started(peer._user(peer.good), "max_connections: 1")
    async with open_backend(peer, **addresses(server)) as first, open_backend(peer, **addresses(server)) as second:
        assert await values(first, measure="messages") == {}
        assert await failure(second, measure="messages") in {
            (FailureClass.REFUSED, "the server has reached its maximum number of connections"),
            (
                FailureClass.UNREACHABLE,
                "connection lost",
            ),  # the server closes the connection, perhaps before its error is read
        }
        assert await values(first, measure="messages") == {}


@pytest.mark.parametrize(
    "greeting",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"INFO nonsense\r\n", b"INFO []\r\n", b"+OK\r\n", b"INFO {}\r\nnonsense\r\n"],
)
async def test_unexpected_greeting_is_rejected(peer: Peer, greeting: bytes) -> None:
    peer.proxy.respond(greeting)
    async with open_backend(peer) as opened:
        assert await failure(opened, 2, measure="messages") == (FailureClass.REFUSED, "unexpected response format")


# ---- validation


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"measure": "lag"}, "stream: required with measure lag"),
        (
            {"stream": "a.b"},
            "stream: must not contain spaces, dots, slashes, * or >",
        ),
        (
            {"stream": "a", "consumer": "*"},
            "consumer: must not contain spaces, dots, slashes, * or >",
        ),
        (
            {"stream": "a", "consumer": "b", "measure": "messages"},
            "consumer: cannot be used with measure messages; use lag, pending or ackPending for a consumer",
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
        ({"addresses": ["nats://a"]}, "addresses[0]: not an address; write host:port, without a scheme"),
        ({"tokenFile": "t"}, "tokenFile: cannot be combined with passwordFile"),
        ({"passwordFile": ""}, "passwordFile: required with username"),
        ({"username": ""}, "username: required with passwordFile"),
        ({"domain": "a.b"}, "domain: must not contain spaces, dots, slashes, * or >"),
        ({"domain": "a", "apiPrefix": "b"}, "apiPrefix: cannot be combined with domain"),
        ({"apiPrefix": "a."}, "apiPrefix: must be a subject without spaces, * or >, and not end with a dot"),
        ({"inboxPrefix": ""}, "inboxPrefix: must be a subject without spaces, * or >, and not end with a dot"),
        ({"tls": {"keyFile": "k"}}, "tls.certFile: required with keyFile"),
        ({"circuitBreaker": {"failureThreshold": 0}}, "circuitBreaker.failureThreshold: must be at least 1, is 0"),
    ],
)
def test_invalid_settings_are_reported(peer: Peer, settings: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, **settings)
    assert caught.value.messages == (f"backends.it.nats.{problem}",)

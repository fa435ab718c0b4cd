"""What is HTTP's own: what is sent, what is not followed, certificates on both sides, sizes, statuses."""

import gzip
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapter.app import clock
from adapter.backends.backend import Backend
from adapter.backends.loader import opened
from adapter.config.model import decode
from adapter.errors import BackendError, BackendTimeout
from adapter.rules.query_builder import whole
from autoscaler.types.observation import FailureClass
from tests.control_plane.certificates import Authority
from tests.prometheus.failing_server import Trouble, trouble

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.fixture
def server() -> Iterator[Trouble]:
    with trouble("http://127.0.0.1:1") as told:
        told.kind, told.body = "200", b"7"
        yield told


@asynccontextmanager
async def backend(url: str, **settings: Any) -> AsyncIterator[Backend]:
    document = {"backends": {"it": {"http": {"url": url, **settings}}}}
    made = opened("it", decode(document).backends["it"].settings, clock)
    try:
        yield made
    finally:
        await made.aclose()


async def ask(made: Backend, seconds: float = 5, **parameters: Any) -> list[float]:
    rule = {"name": "m", "backend": "it", "parameters": {"format": "json", **parameters}}
    (read,) = decode({"backends": {"it": {"http": {"url": "http://x"}}}, "rules": [rule]}).rules
    return [sample.value for sample in await made.fetch(whole(read), timedelta(seconds=seconds))]


async def failure(made: Backend, **parameters: Any) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await ask(made, **parameters)
    return caught.value.failure, caught.value.message


async def test_a_path_comes_behind_the_url_and_is_sent_as_it_is(server: Trouble) -> None:
    async with backend(f"{server.url}/base/") as made:
        assert await ask(made, path="/a%2Fb/c?d=e%20f&g") == [7]
        assert server.path == "/base/a%2Fb/c?d=e%20f&g"
        assert await ask(made) == [7]
        assert server.path == "/base"


async def test_headers_and_secrets_are_sent_and_read_anew(server: Trouble, tmp_path: Path) -> None:
    key, password = tmp_path / "key", tmp_path / "password"
    key.write_text("first-key")
    password.write_text("open sesame")
    settings = {
        "headers": {"X-Tenant": "shop"},
        "headerFiles": {"X-Api-Key": str(key)},
        "basic": {"username": "ali", "passwordFile": str(password)},
    }
    async with backend(server.url, **settings) as made:
        await ask(made)
        assert (server.headers["x-tenant"], server.headers["x-api-key"]) == ("shop", "first-key")
        assert server.headers["authorization"] == "Basic YWxpOm9wZW4gc2VzYW1l"
        key.write_text("second-key")
        await ask(made)
        assert server.headers["x-api-key"] == "second-key"
        server.kind, server.body = "403", b"second-key and YWxpOm9wZW4gc2VzYW1l of shop, who is open sesame?"
        with pytest.raises(BackendError) as caught:
            await ask(made)
        assert caught.value.detail == "*** and *** of ***, who is ***?"
        key.unlink()
        assert await failure(made) == (FailureClass.UNAUTHORIZED, "headerFiles.X-Api-Key cannot be read")


@pytest.mark.parametrize(
    ("status", "expected", "message"),
    [
        (302, FailureClass.REFUSED, "HTTP 302 Found"),
        (400, FailureClass.BAD_QUERY, "HTTP 400 Bad Request"),
        (401, FailureClass.UNAUTHORIZED, "HTTP 401 Unauthorized"),
        (403, FailureClass.UNAUTHORIZED, "HTTP 403 Forbidden"),
        (404, FailureClass.REFUSED, "HTTP 404 Not Found"),
        (429, FailureClass.REFUSED, "HTTP 429 Too Many Requests"),
        (500, FailureClass.REFUSED, "HTTP 500 Internal Server Error"),
        (502, FailureClass.UNREACHABLE, "HTTP 502 Bad Gateway"),
        (503, FailureClass.UNREACHABLE, "HTTP 503 Service Unavailable"),
        (504, FailureClass.TIMED_OUT, "no answer within 5s"),
        (599, FailureClass.REFUSED, "HTTP 599"),
    ],
)
async def test_a_status_has_its_class_and_is_asked_for_once(
    server: Trouble, status: int, expected: FailureClass, message: str
) -> None:
    server.kind = str(status)
    async with backend(server.url) as made:
        assert await failure(made) == (expected, message)
    assert server.requests == 1


@pytest.mark.parametrize(
    ("kind", "expected", "message"),
    [
        ("reset", FailureClass.UNREACHABLE, "the connection broke"),
        ("hang-up", FailureClass.UNREACHABLE, "the connection broke"),
        ("truncate", FailureClass.UNREACHABLE, "the connection broke"),
    ],
)
async def test_a_connection_that_breaks(server: Trouble, kind: str, expected: FailureClass, message: str) -> None:
    server.kind = kind
    async with backend(server.url) as made:
        assert await failure(made) == (expected, message)


async def test_nobody_there_and_no_such_name() -> None:
    async with backend("http://127.0.0.1:1") as made:
        assert await failure(made) == (FailureClass.UNREACHABLE, "connection refused")
    async with backend("http://nobody.invalid") as made:
        assert await failure(made) == (FailureClass.UNREACHABLE, "its name does not resolve")


async def test_an_answer_that_is_too_large_is_not_read(server: Trouble) -> None:
    server.body = b" " * 2000 + b"7"
    async with backend(server.url, maxResponseBytes=1000) as made:
        assert await failure(made) == (FailureClass.REFUSED, "the answer is larger than maxResponseBytes")
        server.body = b"7"
        assert await ask(made) == [7]


async def test_a_small_answer_cannot_become_large_in_our_memory(server: Trouble) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 100_000
    server.kind, server.body, server.extra = "200", bomb, {"Content-Encoding": "gzip"}
    async with backend(server.url) as made:
        assert await failure(made) == (FailureClass.REFUSED, "the answer is larger than maxResponseBytes")
        server.body = b"no gzip at all"
        assert (await failure(made))[0] in {FailureClass.REFUSED, FailureClass.UNREACHABLE}


async def test_the_environments_proxy_is_not_ours_and_a_configured_one_is(
    server: Trouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with backend(server.url) as made:
        assert await ask(made) == [7]
    async with backend("http://elsewhere.example", proxyUrl=server.url) as made:
        assert await ask(made, path="/x") == [7]
        assert server.path == "http://elsewhere.example/x"


class Encrypted:
    """A server that asks for a certificate, and who is who."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers, self.clients = Authority.new("servers"), Authority.new("clients")
        (folder / "ca.crt").write_text(self.servers.pem)
        self.clients.client("us").save(folder, "us")
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.clients.pem)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.load_cert_chain(*self.servers.server("numbers.example").save(folder, "server"))

    def tls(self, **others: object) -> dict[str, object]:
        ours = {"caFile": "ca.crt", "certFile": "us.crt", "keyFile": "us.key"}
        files = {key: str(self.folder / name) for key, name in ours.items()}
        return {"tls": {**files, "serverName": "numbers.example", **others}}


@pytest.fixture
def encrypted(tmp_path: Path) -> Encrypted:
    return Encrypted(tmp_path)


@pytest.fixture
def tls_server(encrypted: Encrypted) -> Iterator[Trouble]:
    with trouble("http://127.0.0.1:1", encrypted.context) as told:
        told.kind, told.body = "200", b"7"
        yield told


_REFUSED = (FailureClass.UNREACHABLE, "its certificate or ours was not accepted")


async def test_both_sides_show_certificates(encrypted: Encrypted, tls_server: Trouble) -> None:
    async with backend(tls_server.url, **encrypted.tls()) as made:
        assert [await ask(made) for _ in range(3)] == [[7]] * 3


async def test_a_certificate_for_another_name_or_of_a_stranger_is_not_believed(
    encrypted: Encrypted, tls_server: Trouble
) -> None:
    async with backend(tls_server.url, **encrypted.tls(serverName="")) as made:
        assert await failure(made) == _REFUSED
    (encrypted.folder / "ca.crt").write_text(Authority.new("strangers").pem)
    async with backend(tls_server.url, **encrypted.tls()) as made:
        assert await failure(made) == _REFUSED
        (encrypted.folder / "ca.crt").write_text(encrypted.servers.pem)
        assert await ask(made) == [7]  # files that changed are read again
    async with backend(tls_server.url, **encrypted.tls(caFile="", insecureSkipVerify=True)) as made:
        assert await ask(made) == [7]  # if one insists


async def test_files_of_tls_that_are_not_there_are_told(encrypted: Encrypted, tls_server: Trouble) -> None:
    (encrypted.folder / "us.key").unlink()
    async with backend(tls_server.url, **encrypted.tls()) as made:
        assert await failure(made) == (FailureClass.UNREACHABLE, "the files of tls cannot be used")


async def test_an_encrypted_answer_that_stalls_ends_with_the_deadline(
    encrypted: Encrypted, tls_server: Trouble
) -> None:
    async with backend(tls_server.url, **encrypted.tls()) as made:
        tls_server.kind = "stall"
        with pytest.raises(BackendTimeout):
            await ask(made, seconds=0.4)
        tls_server.kind = "200"
        assert await ask(made) == [7]

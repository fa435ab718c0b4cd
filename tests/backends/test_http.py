"""Tests of the HTTP backend beyond the contract of all backends."""

import gzip
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapter.backends.backend import Backend
from adapter.backends.loader import create_backend
from adapter.config.loading import decode
from adapter.errors import BackendError, BackendTimeout
from adapter.process import clock
from adapter.rules.query_builder import snapshot_query
from autoscaler.types.observation import FailureClass
from tests.control_plane.certificates import Authority
from tests.prometheus.failing_server import FailingProxy, failing_proxy

pytestmark = pytest.mark.usefixtures("no_resource_leaks")


@pytest.fixture
def server() -> Iterator[FailingProxy]:
    with failing_proxy("http://127.0.0.1:1") as server:
        server.failure, server.body = "200", b"7"
        yield server


@asynccontextmanager
async def backend(url: str, **settings: Any) -> AsyncIterator[Backend]:
    document = {"backends": {"it": {"http": {"url": url, **settings}}}}
    opened = create_backend("it", decode(document).backends["it"].settings, clock)
    try:
        yield opened
    finally:
        await opened.aclose()


async def fetch(opened: Backend, seconds: float = 5, **parameters: Any) -> list[float]:
    rule = {"name": "m", "backend": "it", "parameters": {"format": "json", **parameters}}
    (decoded,) = decode({"backends": {"it": {"http": {"url": "http://x"}}}, "rules": [rule]}).rules
    return [sample.value for sample in await opened.fetch(snapshot_query(decoded), timedelta(seconds=seconds))]


async def failure(opened: Backend, **parameters: Any) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await fetch(opened, **parameters)
    return caught.value.failure, caught.value.message


async def test_path_is_appended_to_the_url_unchanged(server: FailingProxy) -> None:
    async with backend(f"{server.url}/base/") as opened:
        assert await fetch(opened, path="/a%2Fb/c?d=e%20f&g") == [7]
        assert server.path == "/base/a%2Fb/c?d=e%20f&g"
        assert await fetch(opened) == [7]
        assert server.path == "/base"


async def test_headers_and_secret_files_are_sent_and_reloaded(server: FailingProxy, tmp_path: Path) -> None:
    key, password = tmp_path / "key", tmp_path / "password"
    key.write_text("first-key")
    password.write_text("open sesame")
    settings = {
        "headers": {"X-Tenant": "shop"},
        "headerFiles": {"X-Api-Key": str(key)},
        "basicAuth": {"username": "alice", "passwordFile": str(password)},
    }
    async with backend(server.url, **settings) as opened:
        await fetch(opened)
        assert (server.headers["x-tenant"], server.headers["x-api-key"]) == ("shop", "first-key")
        assert server.headers["authorization"] == "Basic YWxpY2U6b3BlbiBzZXNhbWU="
        key.write_text("second-key")
        await fetch(opened)
        assert server.headers["x-api-key"] == "second-key"
        server.failure, server.body = "403", b"second-key and YWxpY2U6b3BlbiBzZXNhbWU= of shop, who is open sesame?"
        with pytest.raises(BackendError) as caught:
            await fetch(opened)
        assert caught.value.detail == "*** and *** of ***, who is ***?"
        key.unlink()
        assert await failure(opened) == (FailureClass.UNAUTHORIZED, "headerFiles.X-Api-Key cannot be read")


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
        (504, FailureClass.TIMED_OUT, "no response within 5s"),
        (599, FailureClass.REFUSED, "HTTP 599"),
    ],
)
async def test_http_status_is_classified_and_not_retried(
    server: FailingProxy, status: int, expected: FailureClass, message: str
) -> None:
    server.failure = str(status)
    async with backend(server.url) as opened:
        assert await failure(opened) == (expected, message)
    assert server.requests == 1


@pytest.mark.parametrize(
    ("kind", "expected", "message"),
    [
        ("reset", FailureClass.UNREACHABLE, "connection lost"),
        ("close", FailureClass.UNREACHABLE, "connection lost"),
        ("truncate", FailureClass.UNREACHABLE, "connection lost"),
    ],
)
async def test_broken_connection_is_unreachable(
    server: FailingProxy, kind: str, expected: FailureClass, message: str
) -> None:
    server.failure = kind
    async with backend(server.url) as opened:
        assert await failure(opened) == (expected, message)


async def test_connection_refused_and_unknown_host() -> None:
    async with backend("http://127.0.0.1:1") as opened:
        assert await failure(opened) == (FailureClass.UNREACHABLE, "connection refused")
    async with backend("http://unknown.invalid") as opened:
        assert await failure(opened) == (FailureClass.UNREACHABLE, "host name 'unknown.invalid' does not resolve")


async def test_response_larger_than_the_limit_is_rejected(server: FailingProxy) -> None:
    server.body = b" " * 2000 + b"7"
    async with backend(server.url, maxResponseBytes=1000) as opened:
        assert await failure(opened) == (FailureClass.REFUSED, "the response is larger than maxResponseBytes")
        server.body = b"7"
        assert await fetch(opened) == [7]


async def test_compressed_response_is_limited_by_its_decompressed_size(server: FailingProxy) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 100_000
    server.failure, server.body, server.extra = "200", bomb, {"Content-Encoding": "gzip"}
    async with backend(server.url) as opened:
        assert await failure(opened) == (FailureClass.REFUSED, "the response is larger than maxResponseBytes")
        server.body = b"no gzip at all"
        assert (await failure(opened))[0] in {FailureClass.REFUSED, FailureClass.UNREACHABLE}


async def test_proxy_environment_variables_are_ignored_and_proxy_url_is_used(
    server: FailingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with backend(server.url) as opened:
        assert await fetch(opened) == [7]
    async with backend("http://elsewhere.example", proxyUrl=server.url) as opened:
        assert await fetch(opened, path="/x") == [7]
        assert server.path == "http://elsewhere.example/x"


class TlsFiles:
    """CAs and certificates for a server that requires client certificates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers, self.clients = Authority.new("servers"), Authority.new("clients")
        (folder / "ca.crt").write_text(self.servers.pem)
        self.clients.client("steadyscale").save(folder, "client")
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.clients.pem)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.load_cert_chain(*self.servers.server("numbers.example").save(folder, "server"))

    def tls(self, **others: object) -> dict[str, object]:
        names = {"caFile": "ca.crt", "certFile": "client.crt", "keyFile": "client.key"}
        files = {key: str(self.folder / name) for key, name in names.items()}
        return {"tls": {**files, "serverName": "numbers.example", **others}}


@pytest.fixture
def tls_files(tmp_path: Path) -> TlsFiles:
    return TlsFiles(tmp_path)


@pytest.fixture
def tls_server(tls_files: TlsFiles) -> Iterator[FailingProxy]:
    with failing_proxy("http://127.0.0.1:1", tls_files.context) as server:
        server.failure, server.body = "200", b"7"
        yield server


_NOT_ACCEPTED = (FailureClass.UNREACHABLE, "TLS handshake failed: certificate not accepted")


async def test_mutual_tls(tls_files: TlsFiles, tls_server: FailingProxy) -> None:
    async with backend(tls_server.url, **tls_files.tls()) as opened:
        assert [await fetch(opened) for _ in range(3)] == [[7]] * 3


async def test_certificate_of_another_host_or_ca_is_rejected(tls_files: TlsFiles, tls_server: FailingProxy) -> None:
    async with backend(tls_server.url, **tls_files.tls(serverName="")) as opened:
        assert await failure(opened) == _NOT_ACCEPTED
    (tls_files.folder / "ca.crt").write_text(Authority.new("other").pem)
    async with backend(tls_server.url, **tls_files.tls()) as opened:
        assert await failure(opened) == _NOT_ACCEPTED
        (tls_files.folder / "ca.crt").write_text(tls_files.servers.pem)
        assert await fetch(opened) == [7]  # changed files are reloaded
    async with backend(tls_server.url, **tls_files.tls(caFile="", insecureSkipVerify=True)) as opened:
        assert await fetch(opened) == [7]


async def test_missing_tls_files_are_reported(tls_files: TlsFiles, tls_server: FailingProxy) -> None:
    (tls_files.folder / "client.key").unlink()
    async with backend(tls_server.url, **tls_files.tls()) as opened:
        assert await failure(opened) == (
            FailureClass.UNREACHABLE,
            "TLS files cannot be loaded: check caFile, certFile and keyFile",
        )


async def test_stalled_tls_response_ends_at_the_deadline(tls_files: TlsFiles, tls_server: FailingProxy) -> None:
    async with backend(tls_server.url, **tls_files.tls()) as opened:
        tls_server.failure = "stall"
        with pytest.raises(BackendTimeout):
            await fetch(opened, seconds=0.4)
        tls_server.failure = "200"
        assert await fetch(opened) == [7]

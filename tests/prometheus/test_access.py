"""Authentication to Prometheus, TLS, proxies, and the redaction of secrets."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from adapter import errors
from adapter.backends.connection.http_settings import BasicAuth
from adapter.backends.prometheus.backend import PrometheusBackend
from adapter.backends.settings import Tls
from adapter.rules.query_builder import Query
from tests.control_plane.certificates import Authority
from tests.prometheus.failing_server import FailingProxy, failing_proxy
from tests.prometheus.fixed_responses import backend
from tests.prometheus.server import Server

pytestmark = [pytest.mark.prometheus, pytest.mark.usefixtures("no_resource_leaks")]
QUERY = Query("prometheus", "vector(1)")
DEADLINE = timedelta(seconds=60)


async def fetch_value(prometheus: PrometheusBackend) -> float:
    (sample,) = await prometheus.fetch(QUERY, DEADLINE)
    return sample.value


async def failure(prometheus: PrometheusBackend) -> errors.BackendError:
    with pytest.raises(errors.BackendError) as caught:
        await fetch_value(prometheus)
    return caught.value


async def test_token_file_is_read_for_every_request(proxy: FailingProxy, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with backend(proxy.url, bearer_token_file=str(token)) as prometheus:
        await fetch_value(prometheus)
        assert proxy.headers["authorization"] == "Bearer first"
        token.write_text("second")
        await fetch_value(prometheus)
        assert proxy.headers["authorization"] == "Bearer second"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "bearerTokenFile cannot be read", id="missing file"),
        pytest.param("", "bearerTokenFile is empty or contains unprintable characters", id="empty file"),
        pytest.param("a\nb", "bearerTokenFile is empty or contains unprintable characters", id="two lines"),
    ],
)
async def test_no_request_is_sent_without_a_token(
    proxy: FailingProxy, tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "token").write_text(content)
    async with backend(proxy.url, bearer_token_file=str(tmp_path / "token")) as prometheus:
        error = await failure(prometheus)
    assert (type(error), error.message, proxy.requests) == (errors.BackendUnauthorized, message, 0)


async def test_password_is_sent_as_basic_authentication(proxy: FailingProxy, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("open sesame\n")
    async with backend(proxy.url, basic_auth=BasicAuth("ali", str(tmp_path / "password"))) as prometheus:
        await fetch_value(prometheus)
    assert proxy.headers["authorization"] == "Basic YWxpOm9wZW4gc2VzYW1l"


async def test_headers_and_parameters_are_added_to_requests(proxy: FailingProxy) -> None:
    async with backend(proxy.url, headers={"X-Scope-OrgID": "shop"}, parameters={"dedup": "true"}) as prometheus:
        await fetch_value(prometheus)
    assert proxy.headers["x-scope-orgid"] == "shop"
    assert "dedup=true" in proxy.path
    assert "timeout=" in proxy.path  # the server stops the evaluation at the deadline


async def test_long_query_is_sent_with_post(proxy: FailingProxy) -> None:
    async with backend(proxy.url, method="POST") as prometheus:
        query = Query("prometheus", f'depth{{queue=~"a|{"x" * 100_000}"}}')
        (sample,) = await prometheus.fetch(query, DEADLINE)
    assert sample.value == 3


async def test_path_of_the_url_precedes_the_api_path(proxy: FailingProxy) -> None:
    async with backend(f"{proxy.url}/prometheus/") as prometheus:
        assert isinstance(await failure(prometheus), errors.BackendRejected)  # the path does not exist upstream
    assert proxy.path.startswith("/prometheus/api/v1/query?")


async def test_no_secret_is_in_an_error(proxy: FailingProxy, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    async with backend(proxy.url, bearer_token_file=str(tmp_path / "token"), headers={"X-Key": "hush"}) as prometheus:
        proxy.body = b'{"status":"error","errorType":"bad_data","error":"invalid: Bearer s3cret, hush"}'
        for kind in ("400", "401", "403", "500", "200", "reset", "garbage"):
            proxy.failure = kind
            error = await failure(prometheus)
            for text in (error.message, error.detail, repr(error)):
                assert "s3cret" not in text
                assert "hush" not in text


async def test_configured_proxy_is_used_within_the_deadline_and_environment_is_ignored(
    proxy: FailingProxy, fixed: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backend(fixed.url, proxy_url=proxy.url, max_connections=1) as prometheus:
        assert await fetch_value(prometheus) == 1
        assert proxy.path.startswith(f"{fixed.url}/api/v1/query?")
        proxy.failure = "drip"
        with pytest.raises(errors.BackendTimeout):
            await prometheus.fetch(QUERY, timedelta(milliseconds=300))
        proxy.failure = ""
        assert await fetch_value(prometheus) == 1
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with backend(fixed.url) as prometheus:
        assert await fetch_value(prometheus) == 1


async def test_redirects_are_not_followed(proxy: FailingProxy) -> None:
    async with backend(proxy.url) as prometheus:
        proxy.failure = "307"
        assert (await failure(prometheus)).message == "HTTP 307 Temporary Redirect (internal)"
        assert proxy.requests == 1


@dataclass
class Encrypted:
    """A proxy that requires a client certificate, and the CAs."""

    proxy: FailingProxy
    folder: Path
    servers: Authority
    clients: Authority

    def tls(self, **options: object) -> Tls:
        files = {"ca_file": "ca.crt", "cert_file": "client.crt", "key_file": "client.key"}
        return Tls(**{key: str(self.folder / name) for key, name in files.items()} | options)  # type: ignore[arg-type]


@pytest.fixture
def encrypted(fixed: Server, tmp_path: Path) -> Iterator[Encrypted]:
    servers, clients = Authority.new("servers"), Authority.new("clients")
    chain = servers.server("prometheus.example").save(tmp_path, "server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=clients.pem)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(*chain)
    (tmp_path / "ca.crt").write_text(servers.pem)
    clients.client("steadyscale").save(tmp_path, "client")
    with failing_proxy(fixed.url, context) as proxy:
        yield Encrypted(proxy, tmp_path, servers, clients)


async def test_client_certificate_is_presented(encrypted: Encrypted) -> None:
    async with backend(encrypted.proxy.url, tls=encrypted.tls(server_name="prometheus.example")) as prometheus:
        assert [await fetch_value(prometheus) for _ in range(3)] == [1, 1, 1]


async def test_server_certificate_for_another_name_is_rejected(encrypted: Encrypted) -> None:
    async with backend(encrypted.proxy.url, tls=encrypted.tls()) as prometheus:
        error = await failure(prometheus)
    assert (type(error), error.message) == (errors.BackendUnreachable, "TLS handshake failed: certificate not accepted")


async def test_server_certificate_of_an_unknown_ca_is_rejected_until_the_ca_file_changes(encrypted: Encrypted) -> None:
    (encrypted.folder / "ca.crt").write_text(Authority.new("unknown").pem)
    async with backend(encrypted.proxy.url, tls=encrypted.tls(server_name="prometheus.example")) as prometheus:
        assert (await failure(prometheus)).message == "TLS handshake failed: certificate not accepted"
        (encrypted.folder / "ca.crt").write_text(encrypted.servers.pem)
        assert await fetch_value(prometheus) == 1


async def test_insecure_skip_verify_accepts_any_certificate(encrypted: Encrypted) -> None:
    async with backend(encrypted.proxy.url, tls=encrypted.tls(ca_file="", insecure_skip_verify=True)) as prometheus:
        assert await fetch_value(prometheus) == 1


async def test_missing_key_file_is_reported(encrypted: Encrypted) -> None:
    (encrypted.folder / "client.key").unlink()
    async with backend(encrypted.proxy.url, tls=encrypted.tls()) as prometheus:
        assert (await failure(prometheus)).message == "TLS files cannot be loaded: check caFile, certFile and keyFile"


async def test_stalled_tls_server_ends_with_the_deadline(encrypted: Encrypted) -> None:
    async with backend(
        encrypted.proxy.url, tls=encrypted.tls(server_name="prometheus.example"), max_connections=1
    ) as prometheus:
        encrypted.proxy.failure = "stall"
        with pytest.raises(errors.BackendTimeout):
            await prometheus.fetch(QUERY, timedelta(milliseconds=300))
        encrypted.proxy.failure = ""
        assert await fetch_value(prometheus) == 1

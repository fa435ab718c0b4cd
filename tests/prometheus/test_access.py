"""Who we are to Prometheus: tokens that rotate, passwords, tenants, certificates; and that no secret is ever told."""

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
from tests.prometheus.failing_server import Trouble, trouble
from tests.prometheus.fixed_responses import backend
from tests.prometheus.server import Server

pytestmark = [pytest.mark.prometheus, pytest.mark.usefixtures("nothing_is_left")]
QUERY = Query("prometheus", "vector(1)")
DEADLINE = timedelta(seconds=5)


async def ask(made: PrometheusBackend) -> float:
    (sample,) = await made.fetch(QUERY, DEADLINE)
    return sample.value


async def failure(made: PrometheusBackend) -> errors.BackendError:
    with pytest.raises(errors.BackendError) as caught:
        await ask(made)
    return caught.value


async def test_a_token_is_read_anew_for_every_request(hop: Trouble, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with backend(hop.url, bearer_token_file=str(token)) as made:
        await ask(made)
        assert hop.headers["authorization"] == "Bearer first"
        token.write_text("second")
        await ask(made)
        assert hop.headers["authorization"] == "Bearer second"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "bearerTokenFile cannot be read", id="no file"),
        pytest.param("", "bearerTokenFile is empty or contains unprintable characters", id="an empty file"),
        pytest.param("a\nb", "bearerTokenFile is empty or contains unprintable characters", id="two lines"),
    ],
)
async def test_without_a_token_nothing_is_sent(hop: Trouble, tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "token").write_text(content)
    async with backend(hop.url, bearer_token_file=str(tmp_path / "token")) as made:
        told = await failure(made)
    assert (type(told), told.message, hop.requests) == (errors.BackendUnauthorized, message, 0)


async def test_a_password_is_sent_as_basic_authentication(hop: Trouble, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("open sesame\n")
    async with backend(hop.url, basic_auth=BasicAuth("ali", str(tmp_path / "password"))) as made:
        await ask(made)
    assert hop.headers["authorization"] == "Basic YWxpOm9wZW4gc2VzYW1l"


async def test_tenants_are_headers_and_parameters_are_added(hop: Trouble) -> None:
    async with backend(hop.url, headers={"X-Scope-OrgID": "shop"}, parameters={"dedup": "true"}) as made:
        await ask(made)
    assert hop.headers["x-scope-orgid"] == "shop"
    assert "dedup=true" in hop.path
    assert "timeout=" in hop.path  # the server may stop when we do


async def test_a_long_query_is_posted(hop: Trouble) -> None:
    async with backend(hop.url, method="POST") as made:
        query = Query("prometheus", f'depth{{queue=~"a|{"x" * 100_000}"}}')
        (sample,) = await made.fetch(query, DEADLINE)
    assert sample.value == 3


async def test_a_path_before_the_api_is_kept(hop: Trouble) -> None:
    async with backend(f"{hop.url}/prometheus/") as made:
        assert isinstance(await failure(made), errors.BackendRejected)  # there is no such path upstream
    assert hop.path.startswith("/prometheus/api/v1/query?")


async def test_no_secret_is_in_what_is_told(hop: Trouble, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    async with backend(hop.url, bearer_token_file=str(tmp_path / "token"), headers={"X-Key": "hush"}) as made:
        hop.body = b'{"status":"error","errorType":"bad_data","error":"what is Bearer s3cret, and hush?"}'
        for kind in ("400", "401", "403", "500", "200", "reset", "garbage"):
            hop.kind = kind
            told = await failure(made)
            for text in (told.message, told.detail, repr(told)):
                assert "s3cret" not in text
                assert "hush" not in text


async def test_a_proxy_is_used_if_it_is_configured_and_has_the_same_deadline(
    hop: Trouble, fixed: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backend(fixed.url, proxy_url=hop.url, max_connections=1) as made:
        assert await ask(made) == 1
        assert hop.path.startswith(f"{fixed.url}/api/v1/query?")
        hop.kind = "drip"
        with pytest.raises(errors.BackendTimeout):
            await made.fetch(QUERY, timedelta(milliseconds=300))
        hop.kind = ""
        assert await ask(made) == 1
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with backend(fixed.url) as made:
        assert await ask(made) == 1  # the environment's is not ours


async def test_cookies_and_redirects_are_not_followed(hop: Trouble) -> None:
    async with backend(hop.url) as made:
        hop.kind = "307"
        assert (await failure(made)).message == "HTTP 307 Temporary Redirect (internal)"
        assert hop.requests == 1


@dataclass
class Encrypted:
    """A hop that asks for a certificate, and who is who."""

    hop: Trouble
    folder: Path
    servers: Authority
    clients: Authority

    def tls(self, **others: object) -> Tls:
        ours = {"ca_file": "ca.crt", "cert_file": "us.crt", "key_file": "us.key"}
        return Tls(**{key: str(self.folder / name) for key, name in ours.items()} | others)  # type: ignore[arg-type]


@pytest.fixture
def encrypted(fixed: Server, tmp_path: Path) -> Iterator[Encrypted]:
    servers, clients = Authority.new("servers"), Authority.new("clients")
    chain = servers.server("prometheus.example").save(tmp_path, "server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=clients.pem)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(*chain)
    (tmp_path / "ca.crt").write_text(servers.pem)
    clients.client("us").save(tmp_path, "us")
    with trouble(fixed.url, context) as hop:
        yield Encrypted(hop, tmp_path, servers, clients)


async def test_both_sides_show_certificates(encrypted: Encrypted) -> None:
    async with backend(encrypted.hop.url, tls=encrypted.tls(server_name="prometheus.example")) as made:
        assert [await ask(made) for _ in range(3)] == [1, 1, 1]


async def test_a_certificate_for_another_name_is_not_believed(encrypted: Encrypted) -> None:
    async with backend(encrypted.hop.url, tls=encrypted.tls()) as made:
        told = await failure(made)
    assert (type(told), told.message) == (errors.BackendUnreachable, "TLS handshake failed: certificate not accepted")


async def test_a_certificate_of_a_stranger_is_not_believed(encrypted: Encrypted) -> None:
    (encrypted.folder / "ca.crt").write_text(Authority.new("strangers").pem)
    async with backend(encrypted.hop.url, tls=encrypted.tls(server_name="prometheus.example")) as made:
        assert (await failure(made)).message == "TLS handshake failed: certificate not accepted"
        (encrypted.folder / "ca.crt").write_text(encrypted.servers.pem)
        assert await ask(made) == 1  # files that changed are read again


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")  # pytest resets urllib3's filter
async def test_insecure_skip_verify_accepts_any_certificate(encrypted: Encrypted) -> None:
    async with backend(encrypted.hop.url, tls=encrypted.tls(ca_file="", insecure_skip_verify=True)) as made:
        assert await ask(made) == 1


async def test_files_that_are_not_there_are_told(encrypted: Encrypted) -> None:
    (encrypted.folder / "us.key").unlink()
    async with backend(encrypted.hop.url, tls=encrypted.tls()) as made:
        assert (await failure(made)).message == "TLS files cannot be loaded: check caFile, certFile and keyFile"


async def test_a_handshake_that_stalls_ends_with_the_deadline(encrypted: Encrypted) -> None:
    plain = encrypted.hop.url
    async with backend(plain, tls=encrypted.tls(server_name="prometheus.example"), max_connections=1) as made:
        encrypted.hop.kind = "stall"
        with pytest.raises(errors.BackendTimeout):
            await made.fetch(QUERY, timedelta(milliseconds=300))
        encrypted.hop.kind = ""
        assert await ask(made) == 1

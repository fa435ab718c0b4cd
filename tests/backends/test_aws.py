"""AWS credentials, regions, proxies, TLS and errors, tested with SQS."""

import asyncio
import json
import logging
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError, BackendTimeout, BackendUnauthorized, BackendUnreachable
from adapter.process import clock
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, configuration_for, open_backend
from tests.backends.contract import Json
from tests.backends.faulty_proxy import faulty_proxy
from tests.backends.moto_server import ACCOUNT, Key
from tests.backends.peers.sqs import Peer
from tests.control_plane.certificates import Authority

pytestmark = [
    pytest.mark.usefixtures("no_resource_leaks", "no_aws_environment"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="sqs")], indirect=True, scope="session"),
]
NO_FILES = {"accessKeyIdFile": "", "secretAccessKeyFile": ""}
QUEUE = {"queue": "shop-orders"}


@pytest.fixture
def no_aws_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove all credentials and regions from the environment."""
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ROLE_ARN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def key(peer: Peer) -> Key:
    """Return a key that may read a queue."""
    peer.set_values({"orders": 3})
    return peer.key


async def value(opened: OpenBackend) -> float:
    (sample,) = await opened.fetch(QUEUE)
    return sample.value


async def failure(opened: OpenBackend, seconds: float | None = None) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await opened.fetch(QUEUE, seconds)
    return caught.value


class Metadata:
    """The EKS Pod Identity agent and the instance metadata service."""

    def __init__(self) -> None:
        self.credentials: Json = {}
        self.expects = "first-token-of-the-pod"
        self.requests: list[str] = []
        self.port = 0

    def set_credentials(self, key: Key, token: str, lifetime: timedelta) -> None:
        expires = (clock() + lifetime).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.credentials = {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "AccessKeyId": key.id,
            "SecretAccessKey": key.secret,
            "Token": token,
            "Expiration": expires,
            "LastUpdated": "2026-01-01T00:00:00Z",
        }

    def respond(self, method: str, path: str, headers: Any) -> tuple[int, str]:
        self.requests.append(f"{method} {path}")
        if (method, path) == ("GET", "/v1/credentials"):
            is_known = headers.get("Authorization") == self.expects
            return (200, json.dumps(self.credentials)) if is_known else (401, "unknown token")
        if (method, path) == ("PUT", "/latest/api/token"):
            return 200, "token-of-the-instance"
        if headers.get("X-aws-ec2-metadata-token") != "token-of-the-instance":
            return 401, ""
        roles = "/latest/meta-data/iam/security-credentials/"
        if path == roles:
            return 200, "node-role"
        return (200, json.dumps(self.credentials)) if path == f"{roles}node-role" else (404, "")


@contextmanager
def metadata() -> Iterator[Metadata]:
    service = Metadata()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = service.respond(self.command, self.path, self.headers)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def do_PUT(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="peer metadata")
    thread.start()
    service.port = server.server_port
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def assumed(peer: Peer) -> tuple[Key, str]:
    """Return a temporary key of a role that may read queues, and its session token."""
    name = f"temporary-{len(peer.server.client('iam').list_roles()['Roles'])}"
    arn = peer.server.add_role(name, "sqs:*")
    credentials = peer.server.client("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
    return Key(credentials["AccessKeyId"], credentials["SecretAccessKey"]), credentials["SessionToken"]


async def test_credentials_from_environment_variables(peer: Peer, key: Key, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key.id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key.secret)
    async with open_backend(peer, **NO_FILES) as opened:
        assert await value(opened) == 3


async def test_shared_credentials_file_is_read_again_after_a_rejection(peer: Peer, key: Key, tmp_path: Path) -> None:
    def write(secret: str) -> None:
        lines = ("[default]", f"aws_access_key_id = {key.id}", f"aws_secret_access_key = {secret}")
        (tmp_path / "credentials").write_text("\n".join(lines))

    write("expired-secret")
    async with open_backend(peer, **NO_FILES) as opened:
        assert (await failure(opened)).failure is FailureClass.UNAUTHORIZED
        write(key.secret)
        assert await value(opened) == 3


@pytest.mark.usefixtures("key")
async def test_irsa_exchanges_the_service_account_token_at_sts(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    role, token = peer.server.add_role("irsa", "sqs:*"), tmp_path / "token"
    (peer.server.folder / "web-identity-token").write_text("token-of-the-service-account")
    monkeypatch.setenv("AWS_ROLE_ARN", role)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", peer.server.url)
    async with open_backend(peer, **NO_FILES) as opened:
        assert (await failure(opened)).failure is FailureClass.UNAUTHORIZED  # the file is missing
        token.write_text("token-of-another-account")
        error = await failure(opened)
        assert error.failure is FailureClass.UNAUTHORIZED
        assert error.message == "AWS rejected the credentials: InvalidIdentityToken"
        assert "another-account" not in error.detail
        token.write_text("token-of-the-service-account")
        assert await value(opened) == 3
        token.unlink()  # the credentials are valid for an hour
        assert await value(opened) == 3


@pytest.mark.usefixtures("key")
async def test_pod_identity_credentials_are_renewed_before_they_expire(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first-token-of-the-pod")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
    with metadata() as agent:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{agent.port}/v1/credentials")
        agent.set_credentials(*assumed(peer), timedelta(hours=6))
        async with open_backend(peer, **NO_FILES) as opened:
            assert await value(opened) == await value(opened) == 3
            assert len(agent.requests) == 1
        async with open_backend(peer, **NO_FILES) as opened:
            agent.set_credentials(*assumed(peer), timedelta(minutes=5))  # short enough to be renewed immediately
            assert await value(opened) == 3
            agent.expects = "second-token-of-the-pod"
            token.write_text("second-token-of-the-pod")
            agent.set_credentials(*assumed(peer), timedelta(hours=6))
            before = len(agent.requests)
            assert await value(opened) == await value(opened) == 3
            assert len(agent.requests) == before + 1


@pytest.mark.usefixtures("key")
async def test_credentials_from_instance_metadata(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    with metadata() as instance:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://127.0.0.1:{instance.port}/")
        instance.set_credentials(*assumed(peer), timedelta(hours=6))
        async with open_backend(peer, **NO_FILES) as opened:
            assert await value(opened) == 3
        assert instance.requests[0] == "PUT /latest/api/token"


@pytest.mark.usefixtures("key")
async def test_missing_credentials_are_reported(peer: Peer) -> None:
    async with open_backend(peer, **NO_FILES) as opened:
        error = await failure(opened)
        assert isinstance(error, BackendUnauthorized)
        assert error.message == "no AWS credentials: set accessKeyIdFile or configure the provider chain"


@pytest.mark.usefixtures("key")
async def test_missing_profile_is_reported_until_it_exists(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "missing")
    async with open_backend(peer) as opened:
        error = await failure(opened)
        assert (error.failure, error.message) == (
            FailureClass.UNREACHABLE,
            "the AWS configuration of the environment is invalid: ProfileNotFound",
        )
        (tmp_path / "config").write_text("[profile missing]\n")
        assert await value(opened) == 3


@pytest.mark.usefixtures("key")
async def test_session_token_is_sent_and_redacted(peer: Peer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key, session = assumed(peer)
    files = {name: tmp_path / name for name in ("accessKeyIdFile", "secretAccessKeyFile", "sessionTokenFile")}
    for file, text in zip(files.values(), (*key, session), strict=True):
        file.write_text(text)
    async with open_backend(peer, **{name: str(file) for name, file in files.items()}) as opened:
        assert await value(opened) == 3
        peer.refuse_with(403, "SignatureDoesNotMatch", f"we computed x-amz-security-token:{session}")
        error = await failure(opened)
        assert error.message == "AWS error SignatureDoesNotMatch"
        assert "***" in error.detail
        seen = [error.detail, repr(opened.backend), *(str(vars(record)) for record in caplog.records)]
        assert [text for text in seen if session in text or key.secret in text] == []


@pytest.mark.usefixtures("key")
async def test_role_is_assumed_with_its_external_id(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", peer.server.url)
    condition = {"Condition": {"StringEquals": {"sts:ExternalId": "agreed"}}}
    role = peer.server.add_role("with-external-id", "sqs:*", trusted=condition)
    peer.server.allow(peer.user, *peer.may, "sts:AssumeRole")
    async with open_backend(peer, roleArn=role, externalId="agreed") as opened:
        assert await value(opened) == 3
    async with open_backend(peer, roleArn=role, externalId="wrong") as opened:
        error = await failure(opened)
        assert (error.failure, error.message) == (
            FailureClass.UNAUTHORIZED,
            "AWS rejected the credentials: AccessDenied",
        )


@pytest.mark.usefixtures("key")
async def test_permissions_are_those_of_the_assumed_role(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", peer.server.url)
    role = peer.server.add_role("without-permissions", "s3:ListBucket")
    peer.server.allow(peer.user, *peer.may, "sts:AssumeRole")
    async with open_backend(peer, roleArn=role) as opened:
        assert (await failure(opened)).failure is FailureClass.UNAUTHORIZED


async def test_unavailable_sts_is_reported_within_the_deadline(
    peer: Peer, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert key
    role = f"arn:aws:iam::{ACCOUNT}:role/any"
    with faulty_proxy() as sts:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        async with open_backend(peer, roleArn=role) as opened:
            sts.refuse_connections()
            error = await failure(opened)
            assert isinstance(error, BackendUnreachable)
            assert error.message == "no AWS credentials: connection refused"
            sts.stall()
            error = await failure(opened, 0.5)
            assert isinstance(error, BackendTimeout)
            waiting = asyncio.create_task(failure(opened, 30))
            await asyncio.sleep(0.2)
            await opened.backend.aclose()
            assert isinstance(await waiting, BackendUnreachable)


@pytest.mark.usefixtures("key")
async def test_region_is_the_rule_s_or_the_backend_s_or_the_environment_s(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_backend(peer, region="") as opened:
        error = await failure(opened)
        assert error.message == "no AWS region: set region or the variable AWS_REGION"
        assert (await opened.fetch({**QUEUE, "region": "eu-west-1"}))[0].value == 3
        assert await opened.fetch({**QUEUE, "region": "eu-north-1"}) == ()
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    async with open_backend(peer, region="") as opened:
        assert await value(opened) == 3


@pytest.mark.usefixtures("key")
async def test_configured_proxy_is_used_and_environment_is_ignored(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with open_backend(peer) as opened:
        assert await value(opened) == 3
    async with open_backend(peer, proxyUrl=peer.proxy.url, endpointUrl="http://sqs.nowhere.example") as opened:
        assert await value(opened) == 3, "only the proxy resolves that host"
    async with open_backend(peer, proxyUrl="http://127.0.0.1:9") as opened:
        assert isinstance(await failure(opened), BackendUnreachable)


@pytest.mark.usefixtures("key")
async def test_certificate_of_an_unknown_ca_is_rejected_unless_the_ca_bundle_contains_it(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = Authority.new("unknown")
    (tmp_path / "ca.crt").write_text(authority.pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.server("localhost").save(tmp_path, "server"))

    async def respond(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps({"QueueUrl": "x/shop-orders", "Attributes": {"ApproximateNumberOfMessages": "7"}}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0, ssl=context)
    async with server:
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
        async with open_backend(peer, endpointUrl=url) as opened:
            error = await failure(opened)
            assert (error.failure, error.message) == (
                FailureClass.UNREACHABLE,
                "TLS handshake failed: certificate not accepted",
            )
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.crt"))
        async with open_backend(peer, endpointUrl=url) as opened:
            assert [sample.value for sample in await opened.fetch({**QUEUE, "measure": ["visible"]})] == [7]


@pytest.mark.usefixtures("key")
async def test_credentials_are_resolved_again_after_rejection_but_not_after_missing_permission(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with metadata() as agent:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{agent.port}/v1/credentials")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", agent.expects)
        agent.set_credentials(*assumed(peer), timedelta(hours=6))
        async with open_backend(peer, **NO_FILES) as opened:
            assert await value(opened) == 3
            for code, times in (("AccessDeniedException", 1), ("ExpiredTokenException", 2)):
                peer.refuse_with(403, code, "no")
                assert (await failure(opened)).failure is FailureClass.UNAUTHORIZED
                peer.recover()
                assert await value(opened) == 3
                assert len(agent.requests) == times


@pytest.mark.parametrize(
    ("status", "code", "expected", "message"),
    [
        (400, "Throttling", FailureClass.REFUSED, "rate limit exceeded"),
        (400, "RequestThrottled", FailureClass.REFUSED, "rate limit exceeded"),
        (400, "ExpiredToken", FailureClass.UNAUTHORIZED, "AWS error ExpiredToken"),
        (403, "InvalidClientTokenId", FailureClass.UNAUTHORIZED, "AWS error InvalidClientTokenId"),
        (403, "OptInRequired", FailureClass.UNAUTHORIZED, "AWS error OptInRequired"),
        (400, "ValidationError", FailureClass.BAD_QUERY, "AWS error ValidationError"),
        (400, "InvalidNextToken", FailureClass.BAD_QUERY, "AWS error InvalidNextToken"),
        (500, "InternalFailure", FailureClass.REFUSED, "AWS error InternalFailure"),
        (503, "ServiceUnavailable", FailureClass.UNREACHABLE, "AWS error ServiceUnavailable"),
        (504, "", FailureClass.TIMED_OUT, "no response within 60s"),
        (418, "I am 4 teapots!", FailureClass.REFUSED, "HTTP 418 I'm a Teapot"),
    ],
)
async def test_aws_error_code_has_an_error_class_and_a_message(
    peer: Peer, status: int, code: str, expected: FailureClass, message: str
) -> None:
    peer.refuse_with(status, code, "at 12:34 of request 5678")
    async with open_backend(peer) as opened:
        error = await failure(opened)
    assert (error.failure, error.message) == (expected, message)


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirects_are_not_followed(peer: Peer, status: int) -> None:
    with faulty_proxy() as target:
        peer.proxy.respond_http(status, b"", f"Location: {target.url}/", "Connection: close")
        async with open_backend(peer) as opened:
            error = await failure(opened)
        assert (error.failure, error.message[:8]) == (FailureClass.REFUSED, f"HTTP {status}")
        assert target.connections == 0


@pytest.mark.parametrize("has_length", [True, False])
async def test_response_above_the_maximum_size_is_rejected(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, *, has_length: bool
) -> None:
    monkeypatch.setattr("adapter.backends.connection.aws.client.MAX_RESPONSE_BYTES", 1000)
    if has_length:
        peer.proxy.respond_http(200, b"x" * 5000)
    else:
        peer.proxy.respond(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"x" * 1024 + b"\r\n"
        )
    async with open_backend(peer) as opened:
        error = await failure(opened)
    assert (error.failure, error.message) == (FailureClass.REFUSED, "the response is larger than 16 MiB")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"secretAccessKeyFile": ""}, "secretAccessKeyFile: required with accessKeyIdFile"),
        ({"accessKeyIdFile": ""}, "accessKeyIdFile: required with secretAccessKeyFile"),
        ({**NO_FILES, "sessionTokenFile": "/t"}, "accessKeyIdFile: required with sessionTokenFile"),
        ({"region": "eu west/1"}, "region: must be the name of a region, such as eu-west-1"),
        ({"roleArn": "reader"}, "roleArn: must have the form arn:aws:iam::123456789012:role/NAME"),
        ({"externalId": "x"}, "externalId: requires roleArn"),
        ({"endpointUrl": "sqs.local"}, "endpointUrl: not an http or https URL with a host"),
        ({"proxyUrl": "http://[::1"}, "proxyUrl: not an http or https URL with a host"),
        ({"proxyUrl": "http://me:secret@proxy:3128"}, "proxyUrl: must not contain credentials"),
        ({"maxConnections": 0}, "maxConnections: must be at least 1, is 0"),
    ],
)
def test_invalid_settings_are_reported(peer: Peer, settings: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, **settings)
    assert caught.value.messages == (f"backends.it.sqs.{problem}",)

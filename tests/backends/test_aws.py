"""Who we are to AWS: every link of the platform's chain, keys in files, and roles that are assumed; shown on SQS."""

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

from adapter.app import clock
from adapter.errors import BackendError, BackendTimeout, BackendUnauthorized, BackendUnreachable, ConfigInvalid
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of, configured
from tests.backends.contract import Json
from tests.backends.faulty_proxy import hop
from tests.backends.moto_server import ACCOUNT, Key
from tests.backends.peers.sqs import Peer
from tests.control_plane.certificates import Authority

pytestmark = [
    pytest.mark.usefixtures("nothing_is_left", "no_identity"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="sqs")], indirect=True, scope="session"),
]
NO_FILES = {"accessKeyIdFile": "", "secretAccessKeyFile": ""}
QUEUE = {"queue": "shop-orders"}


@pytest.fixture
def no_identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that nobody gave an identity, and nothing that looks for one leaves."""
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
    """A queue to read, and a key that may."""
    peer.hold({"orders": 3})
    return peer.key


async def reads(opened: Opened) -> float:
    (sample,) = await opened.ask(QUEUE)
    return sample.value


async def failure(opened: Opened, seconds: float | None = None) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await opened.ask(QUEUE, seconds)
    return caught.value


class Metadata:
    """Who gives identities on a node: EKS Pod Identity's agent, or the instance's own metadata."""

    def __init__(self) -> None:
        self.credentials: Json = {}
        self.expects = "first-token-of-the-pod"
        self.asked: list[str] = []
        self.port = 0

    def give(self, key: Key, token: str, lasts: timedelta) -> None:
        ends = (clock() + lasts).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.credentials = {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "AccessKeyId": key.id,
            "SecretAccessKey": key.secret,
            "Token": token,
            "Expiration": ends,
            "LastUpdated": "2026-01-01T00:00:00Z",
        }

    def answer(self, method: str, path: str, headers: Any) -> tuple[int, str]:
        self.asked.append(f"{method} {path}")
        match method, path:
            case "GET", "/v1/credentials":
                is_known = headers.get("Authorization") == self.expects
                return (200, json.dumps(self.credentials)) if is_known else (401, "who are you?")
            case "PUT", "/latest/api/token":
                return 200, "token-of-the-instance"
        if headers.get("X-aws-ec2-metadata-token") != "token-of-the-instance":
            return 401, ""
        roles = "/latest/meta-data/iam/security-credentials/"
        if path == roles:
            return 200, "node-role"
        return (200, json.dumps(self.credentials)) if path == f"{roles}node-role" else (404, "")


@contextmanager
def metadata() -> Iterator[Metadata]:
    there = Metadata()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = there.answer(self.command, self.path, self.headers)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def do_PUT(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="peer metadata")
    thread.start()
    there.port = server.server_port
    try:
        yield there
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def assumed(peer: Peer) -> tuple[Key, str]:
    """Give a temporary key of a role that may read queues, and its token."""
    name = f"temporary-{len(peer.server.client('iam').list_roles()['Roles'])}"
    arn = peer.server.add_role(name, "sqs:*")
    made = peer.server.client("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
    return Key(made["AccessKeyId"], made["SecretAccessKey"]), made["SessionToken"]


async def test_the_environment_is_one(peer: Peer, key: Key, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key.id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key.secret)
    async with backend_of(peer, **NO_FILES) as opened:
        assert await reads(opened) == 3


async def test_a_shared_file_is_one_and_is_read_again_when_it_is_not_believed(
    peer: Peer, key: Key, tmp_path: Path
) -> None:
    def write(secret: str) -> None:
        lines = ("[default]", f"aws_access_key_id = {key.id}", f"aws_secret_access_key = {secret}")
        (tmp_path / "credentials").write_text("\n".join(lines))

    write("of-the-day-before")
    async with backend_of(peer, **NO_FILES) as opened:
        assert (await failure(opened)).failure is FailureClass.UNAUTHORIZED
        write(key.secret)
        assert await reads(opened) == 3


@pytest.mark.usefixtures("key")
async def test_irsa_shows_the_token_of_the_service_account_to_sts(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    role, token = peer.server.add_role("irsa", "sqs:*"), tmp_path / "token"
    (peer.server.folder / "web-identity-token").write_text("token-of-the-service-account")
    monkeypatch.setenv("AWS_ROLE_ARN", role)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", peer.server.url)
    async with backend_of(peer, **NO_FILES) as opened:
        assert (await failure(opened)).failure is FailureClass.UNAUTHORIZED  # there is no such file
        token.write_text("token-of-somebody-else")
        error = await failure(opened)
        assert error.failure is FailureClass.UNAUTHORIZED
        assert error.message == "credentials are refused: InvalidIdentityToken"
        assert "somebody-else" not in error.detail
        token.write_text("token-of-the-service-account")
        assert await reads(opened) == 3
        token.unlink()  # what was had for it lasts an hour
        assert await reads(opened) == 3


@pytest.mark.usefixtures("key")
async def test_pod_identity_is_asked_with_the_pods_token_and_again_before_it_ends(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first-token-of-the-pod")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
    with metadata() as agent:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{agent.port}/v1/credentials")
        agent.give(*assumed(peer), timedelta(hours=6))
        async with backend_of(peer, **NO_FILES) as opened:
            assert await reads(opened) == await reads(opened) == 3
            assert len(agent.asked) == 1
        async with backend_of(peer, **NO_FILES) as opened:
            agent.give(*assumed(peer), timedelta(minutes=5))  # so short that it is time to renew it at once
            assert await reads(opened) == 3
            agent.expects = "second-token-of-the-pod"
            token.write_text("second-token-of-the-pod")
            agent.give(*assumed(peer), timedelta(hours=6))
            before = len(agent.asked)
            assert await reads(opened) == await reads(opened) == 3
            assert len(agent.asked) == before + 1


@pytest.mark.usefixtures("key")
async def test_the_instances_metadata_are_the_last(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    with metadata() as instance:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://127.0.0.1:{instance.port}/")
        instance.give(*assumed(peer), timedelta(hours=6))
        async with backend_of(peer, **NO_FILES) as opened:
            assert await reads(opened) == 3
        assert instance.asked[0] == "PUT /latest/api/token"


@pytest.mark.usefixtures("key")
async def test_without_any_it_says_so(peer: Peer) -> None:
    async with backend_of(peer, **NO_FILES) as opened:
        error = await failure(opened)
        assert isinstance(error, BackendUnauthorized)
        assert error.message == "there are no credentials: the platform gives none, and accessKeyIdFile is not set"


@pytest.mark.usefixtures("key")
async def test_a_profile_that_is_not_there_is_told_until_it_is(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    async with backend_of(peer) as opened:
        error = await failure(opened)
        assert (error.failure, error.message) == (
            FailureClass.UNREACHABLE,
            "what the platform says of AWS cannot be used: ProfileNotFound",
        )
        (tmp_path / "config").write_text("[profile nobody]\n")
        assert await reads(opened) == 3


@pytest.mark.usefixtures("key")
async def test_temporary_keys_need_their_token_and_nobody_ever_sees_it(
    peer: Peer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key, session = assumed(peer)
    files = {name: tmp_path / name for name in ("accessKeyIdFile", "secretAccessKeyFile", "sessionTokenFile")}
    for file, text in zip(files.values(), (*key, session), strict=True):
        file.write_text(text)
    async with backend_of(peer, **{name: str(file) for name, file in files.items()}) as opened:
        assert await reads(opened) == 3
        peer.refuse_with(403, "SignatureDoesNotMatch", f"we computed x-amz-security-token:{session}")
        error = await failure(opened)
        assert error.message == "AWS says SignatureDoesNotMatch"
        assert "***" in error.detail
        seen = [error.detail, repr(opened.backend), *(str(vars(record)) for record in caplog.records)]
        assert [text for text in seen if session in text or key.secret in text] == []


@pytest.mark.usefixtures("key")
async def test_a_role_is_assumed_with_the_id_that_it_wants_to_hear(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", peer.server.url)
    condition = {"Condition": {"StringEquals": {"sts:ExternalId": "agreed"}}}
    role = peer.server.add_role("with-external-id", "sqs:*", trusted=condition)
    peer.server.allow(peer.user, *peer.may, "sts:AssumeRole")
    async with backend_of(peer, roleArn=role, externalId="agreed") as opened:
        assert await reads(opened) == 3
    async with backend_of(peer, roleArn=role, externalId="guessed") as opened:
        error = await failure(opened)
        assert (error.failure, error.message[:25]) == (FailureClass.UNAUTHORIZED, "credentials are refused: ")


@pytest.mark.usefixtures("key")
async def test_a_role_may_do_what_it_may_and_not_what_its_keys_may(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", peer.server.url)
    role = peer.server.add_role("may-nothing-here", "s3:ListBucket")
    peer.server.allow(peer.user, *peer.may, "sts:AssumeRole")
    async with backend_of(peer, roleArn=role) as opened:
        assert (await failure(opened)).failure is FailureClass.UNAUTHORIZED


async def test_who_gives_identities_being_away_or_silent_is_told_and_ends_with_the_deadline(
    peer: Peer, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert key
    role = f"arn:aws:iam::{ACCOUNT}:role/any"
    with hop() as sts:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        async with backend_of(peer, roleArn=role) as opened:
            sts.refuse()
            error = await failure(opened)
            assert isinstance(error, BackendUnreachable)
            assert error.message == "credentials cannot be had: connection refused"
            sts.stall()
            error = await failure(opened, 0.5)
            assert isinstance(error, BackendTimeout)
            waiting = asyncio.create_task(failure(opened, 30))
            await asyncio.sleep(0.2)
            await opened.backend.aclose()
            assert isinstance(await waiting, BackendUnreachable)


@pytest.mark.usefixtures("key")
async def test_a_region_is_the_rules_or_the_backends_or_the_platforms(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backend_of(peer, region="") as opened:
        error = await failure(opened)
        assert error.message == "no region is set: write region, or set AWS_REGION"
        assert (await opened.ask({**QUEUE, "region": "eu-west-1"}))[0].value == 3
        assert await opened.ask({**QUEUE, "region": "eu-north-1"}) == ()
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    async with backend_of(peer, region="") as opened:
        assert await reads(opened) == 3


@pytest.mark.usefixtures("key")
async def test_the_environments_proxy_is_not_used_and_ours_is(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with backend_of(peer) as opened:
        assert await reads(opened) == 3
    async with backend_of(peer, proxyUrl=peer.hop.url, endpointUrl="http://sqs.nowhere.example") as opened:
        assert await reads(opened) == 3, "only the proxy knows where that is"
    async with backend_of(peer, proxyUrl="http://127.0.0.1:9") as opened:
        assert isinstance(await failure(opened), BackendUnreachable)


@pytest.mark.usefixtures("key")
async def test_a_certificate_of_a_stranger_is_not_believed_and_the_platforms_bundle_says_who_is_none(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = Authority.new("strangers")
    (tmp_path / "ca.crt").write_text(authority.pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.server("localhost").save(tmp_path, "server"))

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps({"QueueUrl": "x/shop-orders", "Attributes": {"ApproximateNumberOfMessages": "7"}}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
        async with backend_of(peer, endpointUrl=url) as opened:
            error = await failure(opened)
            assert (error.failure, error.message) == (
                FailureClass.UNREACHABLE,
                "its certificate or ours was not accepted",
            )
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.crt"))
        async with backend_of(peer, endpointUrl=url) as opened:
            assert [each.value for each in await opened.ask({**QUEUE, "reads": ["visible"]})] == [7]


@pytest.mark.usefixtures("key")
async def test_what_is_believed_and_may_not_is_no_reason_to_look_for_another_identity(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with metadata() as agent:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{agent.port}/v1/credentials")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", agent.expects)
        agent.give(*assumed(peer), timedelta(hours=6))
        async with backend_of(peer, **NO_FILES) as opened:
            assert await reads(opened) == 3
            for code, times in (("AccessDeniedException", 1), ("ExpiredTokenException", 2)):
                peer.refuse_with(403, code, "no")
                assert (await failure(opened)).failure is FailureClass.UNAUTHORIZED
                peer.recover()
                assert await reads(opened) == 3
                assert len(agent.asked) == times


@pytest.mark.parametrize(
    ("status", "code", "failed", "words"),
    [
        (400, "Throttling", FailureClass.REFUSED, "it is asked too often"),
        (400, "RequestThrottled", FailureClass.REFUSED, "it is asked too often"),
        (400, "ExpiredToken", FailureClass.UNAUTHORIZED, "AWS says ExpiredToken"),
        (403, "InvalidClientTokenId", FailureClass.UNAUTHORIZED, "AWS says InvalidClientTokenId"),
        (403, "OptInRequired", FailureClass.UNAUTHORIZED, "AWS says OptInRequired"),
        (400, "ValidationError", FailureClass.BAD_QUERY, "AWS says ValidationError"),
        (400, "InvalidNextToken", FailureClass.BAD_QUERY, "AWS says InvalidNextToken"),
        (500, "InternalFailure", FailureClass.REFUSED, "AWS says InternalFailure"),
        (503, "ServiceUnavailable", FailureClass.UNREACHABLE, "AWS says ServiceUnavailable"),
        (504, "", FailureClass.TIMED_OUT, "no answer within 5s"),
        (418, "I am 4 teapots!", FailureClass.REFUSED, "HTTP 418 I'm a Teapot"),
    ],
)
async def test_what_aws_says_has_its_class_and_its_words(
    peer: Peer, status: int, code: str, failed: FailureClass, words: str
) -> None:
    peer.refuse_with(status, code, "at 12:34 of request 5678")
    async with backend_of(peer) as opened:
        error = await failure(opened)
    assert (error.failure, error.message) == (failed, words)


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_nobody_is_followed_elsewhere(peer: Peer, status: int) -> None:
    with hop() as elsewhere:
        peer.hop.answer_http(status, b"", f"Location: {elsewhere.url}/", "Connection: close")
        async with backend_of(peer) as opened:
            error = await failure(opened)
        assert (error.failure, error.message[:8]) == (FailureClass.REFUSED, f"HTTP {status}")
        assert elsewhere.connections == 0


@pytest.mark.parametrize("told", [True, False])
async def test_an_answer_that_is_too_large_is_refused_before_it_fills_the_memory(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, *, told: bool
) -> None:
    monkeypatch.setattr("adapter.backends.connection.aws.session.LARGEST", 1000)
    if told:
        peer.hop.answer_http(200, b"x" * 5000)
    else:
        peer.hop.answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"x" * 1024 + b"\r\n")
    async with backend_of(peer) as opened:
        error = await failure(opened)
    assert (error.failure, error.message) == (FailureClass.REFUSED, "the answer is too large")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"secretAccessKeyFile": ""}, "secretAccessKeyFile: is needed with accessKeyIdFile"),
        ({"accessKeyIdFile": ""}, "accessKeyIdFile: is needed with secretAccessKeyFile"),
        ({**NO_FILES, "sessionTokenFile": "/t"}, "accessKeyIdFile: is needed with sessionTokenFile"),
        ({"region": "eu west/1"}, "region: must be the name of a region, such as eu-west-1"),
        ({"roleArn": "reader"}, "roleArn: must be as arn:aws:iam::123456789012:role/NAME"),
        ({"externalId": "x"}, "externalId: is for roleArn, which is not there"),
        ({"endpointUrl": "sqs.local"}, "endpointUrl: not an http or https URL with a host"),
        ({"proxyUrl": "http://[::1"}, "proxyUrl: not an http or https URL with a host"),
        ({"proxyUrl": "http://me:secret@proxy:3128"}, "proxyUrl: must not hold a password"),
        ({"connections": 0}, "connections: must be at least 1, is 0"),
    ],
)
def test_settings_that_make_no_sense(peer: Peer, settings: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, **settings)
    assert caught.value.problems == (f"backends.it.sqs.{problem}",)

"""Commands that connect to the service: the token is sent only to a server that the cluster's APIService verifies."""

import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from adapter.__main__ import main
from tests.control_plane.certificates import Authority

API_SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"
TRACE: dict[str, Any] = {"error": "not served"}
SERVICE, IMPOSTOR = Authority.new("service"), Authority.new("impostor")
COMMANDS = [("metric", "default/m"), ("explain", "shop/orders"), ("debug", "--port", "0")]


class Recorder(ThreadingHTTPServer):
    """A server that records the Authorization headers it gets, and responds with a document."""

    def __init__(self, status: int, document: dict[str, Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.document = status, document
        self.received: list[str | None] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that reject the certificate."""


class _Handler(BaseHTTPRequestHandler):
    """Responds to GET."""

    server: Recorder

    def do_GET(self) -> None:
        self.server.received.append(self.headers.get("Authorization"))
        body = json.dumps(self.server.document).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no log."""


@contextmanager
def running(server: Recorder) -> Iterator[Recorder]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def service(authority: Authority, folder: Path, *names: str) -> Iterator[Recorder]:
    """Run a service with a certificate of the authority that rejects every request."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.server(*names).save(folder, "served")
    context.load_cert_chain(folder / "served.crt", folder / "served.key")
    server = Recorder(403, {"message": "verified"})
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with running(server):
        yield server


@contextmanager
def kubeconfig(folder: Path, spec: dict[str, Any], **cluster: Any) -> Iterator[Path]:
    """Run an API server with this APIService, and write a kubeconfig for it."""
    with running(Recorder(200, {"spec": spec})) as api:
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "fake", "user": "me"}}],
            "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{api.server_port}", **cluster}}],
            "users": [{"name": "me", "user": {"token": "of-the-operator"}}],
        }
        file = folder / "kubeconfig"
        file.write_text(json.dumps(content))
        yield file


def registered(authority: Authority) -> dict[str, Any]:
    names = {"name": "steadyscale", "namespace": "steadyscale"}
    return {"service": names, "caBundle": b64encode(authority.pem.encode()).decode()}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_service_on_loopback_is_verified_by_the_apiservice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
):
    with (
        service(SERVICE, tmp_path, "steadyscale.steadyscale.svc") as served,
        kubeconfig(tmp_path, registered(SERVICE)) as config,
    ):
        url = f"https://127.0.0.1:{served.server_port}"
        assert main([*command, "--server", url, "--kubeconfig", str(config)]) == 2

    assert capsys.readouterr().err == "403: verified\n"
    assert served.received == ["Bearer of-the-operator"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("name", ["steadyscale.steadyscale.svc", "localhost"])
def test_token_is_not_sent_to_another_server_on_loopback(tmp_path: Path, command: tuple[str, ...], name: str):
    with (
        service(IMPOSTOR, tmp_path, name, "127.0.0.1") as served,
        kubeconfig(tmp_path, registered(SERVICE), **{"insecure-skip-tls-verify": True}) as config,
    ):
        url = f"https://localhost:{served.server_port}"
        assert main([*command, "--server", url, "--kubeconfig", str(config)]) == 2

    assert served.received == []


def test_token_is_not_sent_to_another_name_of_the_same_ca(tmp_path: Path):
    with (
        service(SERVICE, tmp_path, "other.steadyscale.svc", "127.0.0.1") as served,
        kubeconfig(tmp_path, registered(SERVICE)) as config,
    ):
        url = f"https://127.0.0.1:{served.server_port}"
        assert main(["metric", "default/m", "--server", url, "--kubeconfig", str(config)]) == 2

    assert served.received == []


@pytest.mark.parametrize("spec", [{}, {"service": {"name": "a", "namespace": "b"}, "caBundle": "!"}, {"service": None}])
def test_apiservice_without_ca_bundle_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spec: dict[str, Any]
):
    with service(SERVICE, tmp_path, "127.0.0.1") as served, kubeconfig(tmp_path, spec) as config:
        url = f"https://127.0.0.1:{served.server_port}"
        assert main(["metric", "default/m", "--server", url, "--kubeconfig", str(config)]) == 2

    assert "its APIService has no valid caBundle; pass the CA with --ca-file" in capsys.readouterr().err
    assert served.received == []


def test_token_is_not_sent_without_tls(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    token = tmp_path / "token"
    token.write_text("of-the-operator")
    with running(Recorder(200, TRACE)) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        assert main(["metric", "default/m", "--server", url, "--token-file", str(token)]) == 2

    assert "credentials are sent only to https URLs" in capsys.readouterr().err
    assert server.received == []

"""Contract peer: an HTTP server with JSON documents, in a thread, that requires a bearer token."""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from autoscaler.types.observation import FailureClass
from tests.backends.contract import HttpPeer, Json


class Peer(HttpPeer):
    kind = "http"
    verified_against = "a test server on loopback"
    unknown_failure = FailureClass.REFUSED  # HTTP 404

    def start(self) -> None:
        self._numbers: Mapping[str, int] = {}
        self._good = "first-token"
        self.token = self.folder / "token"
        self.secrets = ("first-token", "second-token")
        self.renew_credentials()
        peer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                status, body = peer.response(self.path, self.headers.get("Authorization", ""))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Do not log."""

        ThreadingHTTPServer.daemon_threads = True
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="peer http")
        self._thread.start()
        self.proxy.upstream = ("127.0.0.1", self._server.server_port)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def response(self, path: str, authorization: str) -> tuple[int, bytes]:
        if authorization != f"Bearer {self._good}":
            return 401, b"no"
        url = urlsplit(path)
        if url.path == "/numbers":
            listed = [{"name": name, "number": number} for name, number in self._numbers.items()]
            return 200, json.dumps({"numbers": listed}).encode()
        if url.path == "/number":
            (name,) = parse_qs(url.query)["of"]
            return (200, json.dumps(self._numbers[name]).encode()) if name in self._numbers else (404, b"none")
        return 200, b"{}"

    def set_values(self, numbers: Mapping[str, int]) -> None:
        self._numbers = dict(numbers)

    def settings(self) -> Json:
        return {"url": self.proxy.url, "bearerTokenFile": str(self.token)}

    def parameters_for(self, name: str) -> Json:
        return {"path": f"/number?of={name}", "format": "json"}

    def labels(self, name: str) -> Mapping[str, str]:  # noqa: ARG002 - a single number has no labels
        return {}

    def parameters_for_all(self) -> Json:
        return {"path": "/numbers", "value": "numbers[].{labels: {queue: name}, value: number}"}

    def labels_among_all(self, name: str) -> Mapping[str, str]:
        return {"queue": name}

    def parameters_without_result(self) -> Json:
        return {"path": "/numbers", "value": "numbers[?name == 'missing'].{labels: {queue: name}, value: number}"}

    @property
    def current_secret(self) -> str:
        return self._good

    def expire_credentials(self) -> None:
        self._good = next(each for each in self.secrets if each != self._good)

    def renew_credentials(self) -> None:
        self.token.write_text(self._good)

    def remove_credentials(self) -> None:
        self.token.unlink()

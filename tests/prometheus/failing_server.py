"""A hop in front of Prometheus that makes trouble when told to: stalls, drips, refuses, hangs up, talks nonsense."""

import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Trouble:
    """What the hop does with the next requests: passes them on, unless ``kind`` says otherwise."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.kind = ""
        """``stall``, ``drip``, ``reset``, ``hang-up``, ``garbage``, ``truncate`` or a status such as ``503``."""

        self.body = b'{"status":"error","errorType":"internal","error":"as told"}'
        self.extra: dict[str, str] = {}
        """Headers of its own answers."""

        self.url = ""
        self.over = threading.Event()
        """Set: whoever stalls or drips stops it."""

        self.requests = 0
        self.headers: dict[str, str] = {}
        self.path = ""
        self.sockets = 0
        """Connections that are open now."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    trouble: Trouble

    def setup(self) -> None:
        super().setup()
        self.trouble.sockets += 1

    def finish(self) -> None:
        self.trouble.sockets -= 1
        super().finish()

    def do_GET(self) -> None:
        told = self.trouble
        told.requests += 1
        told.headers, told.path = {key.lower(): value for key, value in self.headers.items()}, self.path
        made = getattr(self, f"_{told.kind.replace('-', '_')}", None)
        if told.kind.isdigit():
            self._answer(int(told.kind), told.body)
        elif made is not None:
            self.close_connection = True
            made()
        else:
            self._pass_on(None)

    def do_POST(self) -> None:
        self.trouble.requests += 1
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.trouble.headers = {key.lower(): value for key, value in self.headers.items()}
        self.trouble.path = f"{self.path}?{body.decode()}"
        self._pass_on(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _pass_on(self, body: bytes | None) -> None:
        # To a proxy the whole URL is said.
        url = self.path if self.path.startswith("http:") else f"{self.trouble.upstream}{self.path}"
        request = urllib.request.Request(url, data=body)  # noqa: S310 - loopback
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                self._answer(answer.status, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                self._answer(error.code, error.read())
        except OSError:
            self._answer(502, b"nobody there")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for header, text in self.trouble.extra.items():
            self.send_header(header, text)
        if self.close_connection:  # said, or the next question may be sent just while it closes
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _stall(self) -> None:
        self.trouble.over.wait(30)

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while not self.trouble.over.wait(0.02):
            try:
                self.wfile.write(b" ")
            except OSError:
                return

    def _reset(self) -> None:
        # A pending zero linger makes the kernel send RST instead of FIN.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    def _hang_up(self) -> None:
        pass

    def _garbage(self) -> None:
        self._answer(200, b"<html>please log in</html>")

    def _truncate(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b'{"status":"success","data":')


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Say nothing: that clients hang up is what is being tested."""


@contextmanager
def trouble(upstream: str, tls: ssl.SSLContext | None = None) -> Iterator[Trouble]:
    """Stand in front of a server for the length of the block, encrypted or not."""
    told = Trouble(upstream)
    handler = type("Handler", (_Handler,), {"trouble": told})
    server = _Server(("127.0.0.1", 0), handler)
    if tls is not None:
        # Hands are shaken by the thread of the connection, so that one that stalls stalls no other.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    told.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="trouble")
    thread.start()
    try:
        yield told
    finally:
        told.over.set()
        server.shutdown()
        server.server_close()
        thread.join()

"""An HTTP proxy in front of Prometheus with injected failures."""

import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FailingProxy:
    """Forwards requests unless ``failure`` is set, and records them."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.failure = ""
        """``stall``, ``drip``, ``reset``, ``close``, ``garbage``, ``truncate`` or a status such as ``503``."""

        self.body = b'{"status":"error","errorType":"internal","error":"injected"}'
        self.extra: dict[str, str] = {}
        """Additional headers of injected responses."""

        self.url = ""
        self.stopped = threading.Event()
        """Ends ``stall`` and ``drip``."""

        self.requests = 0
        self.headers: dict[str, str] = {}
        self.path = ""
        self.sockets = 0
        """The number of open connections."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FailingProxy

    def setup(self) -> None:
        super().setup()
        self.proxy.sockets += 1

    def finish(self) -> None:
        self.proxy.sockets -= 1
        super().finish()

    def do_GET(self) -> None:
        proxy = self.proxy
        proxy.requests += 1
        proxy.headers, proxy.path = {key.lower(): value for key, value in self.headers.items()}, self.path
        inject = getattr(self, f"_{proxy.failure}", None)
        if proxy.failure.isdigit():
            self._respond(int(proxy.failure), proxy.body)
        elif inject is not None:
            self.close_connection = True
            inject()
        else:
            self._forward(None)

    def do_POST(self) -> None:
        self.proxy.requests += 1
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.proxy.headers = {key.lower(): value for key, value in self.headers.items()}
        self.proxy.path = f"{self.path}?{body.decode()}"
        self._forward(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _forward(self, body: bytes | None) -> None:
        # A client that uses this server as a proxy sends the whole URL.
        url = self.path if self.path.startswith("http:") else f"{self.proxy.upstream}{self.path}"
        request = urllib.request.Request(url, data=body)  # noqa: S310 - loopback
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                self._respond(response.status, response.read())
        except urllib.error.HTTPError as error:
            with error:
                self._respond(error.code, error.read())
        except OSError:
            self._respond(502, b"upstream unreachable")

    def _respond(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for header, text in self.proxy.extra.items():
            self.send_header(header, text)
        if self.close_connection:  # else the client might reuse the connection while it closes
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _stall(self) -> None:
        self.proxy.stopped.wait(30)

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while not self.proxy.stopped.wait(0.02):
            try:
                self.wfile.write(b" ")
            except OSError:
                return

    def _reset(self) -> None:
        # A zero linger time makes the kernel send RST instead of FIN.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    def _close(self) -> None:
        pass

    def _garbage(self) -> None:
        self._respond(200, b"<html>please log in</html>")

    def _truncate(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b'{"status":"success","data":')


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Log nothing: clients that close connections are expected."""


@contextmanager
def failing_proxy(upstream: str, tls: ssl.SSLContext | None = None) -> Iterator[FailingProxy]:
    """Run a proxy in front of a server during the block, with or without TLS."""
    proxy = FailingProxy(upstream)
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    server = _Server(("127.0.0.1", 0), handler)
    if tls is not None:
        # Each connection's thread does its handshake, so that a stalled handshake blocks no other connection.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    proxy.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="failing-proxy")
    thread.start()
    try:
        yield proxy
    finally:
        proxy.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()

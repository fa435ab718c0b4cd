"""The server behind the backend of kind http: documents for all tenants, one of them slow and one of them large."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Documents:
    """The values of the documents, set by the well-behaved tenant."""

    def __init__(self) -> None:
        self.jobs = 0.0
        self.url = ""
        self.stopped = threading.Event()

    def body(self, path: str) -> bytes:
        if path.startswith("/slow"):
            self.stopped.wait(20)
        if path.startswith("/large"):
            return json.dumps(
                {"items": [{"name": f"item-{number}", "value": number} for number in range(20_000)]}
            ).encode()
        if path.startswith("/xml"):
            return b"<a>" * 500 + b"1" + b"</a>" * 500
        return json.dumps({"jobs": self.jobs, "at": time.monotonic()}).encode()


@contextmanager
def http_backend() -> Iterator[Documents]:
    """Serve the documents during the block."""
    documents = Documents()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = documents.body(self.path)
            try:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # the client gave up

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Print nothing: the client closed the connection at its deadline."""

    server = Server(("127.0.0.1", 0), Handler)
    documents.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="http-backend")
    thread.start()
    try:
        yield documents
    finally:
        documents.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()

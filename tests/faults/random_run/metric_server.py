"""A server of JSON documents with the values of the metrics, for the backend of kind http."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class MetricServer:
    """The values of all metrics; None: the request fails."""

    url: str = ""
    values: dict[str, int | None] = field(default_factory=dict)

    @contextmanager
    def serving(self) -> Iterator["MetricServer"]:
        """Serve the values until the end of the block."""
        values = self.values

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                value = values.get(self.path.strip("/"))
                body = json.dumps({"value": value}).encode()
                self.send_response(503 if value is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """Print nothing: a process was killed while it waited."""

        server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="metric server")
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

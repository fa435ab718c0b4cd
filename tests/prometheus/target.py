"""A scrape target whose values a test sets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Target:
    """The content of the target."""

    def __init__(self) -> None:
        self.text = ""
        self.address = ""

    def set(self, **values: float) -> None:
        """Set gauges by name."""
        self.text = "".join(f"{name} {value}\n" for name, value in values.items())


@contextmanager
def target() -> Iterator[Target]:
    """Serve a target during the block."""
    served = Target()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = served.text.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="target")
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""``steadyscale demo``: runs the demo."""

import argparse
import socket
import sys
from typing import Final

from adapter.demo.environment import LOOPBACK
from adapter.demo.real_prometheus import PrometheusUnavailable
from adapter.demo.run import play
from adapter.errors import CannotListen
from adapter.server.listener import listen

DEFAULT_PORT: Final = 8443


def run(options: argparse.Namespace) -> int:
    try:
        socket.getaddrinfo("localhost", None)
    except socket.gaierror:
        sys.stderr.write("localhost cannot be resolved: add the line `127.0.0.1 localhost` to /etc/hosts\n")
        return 1
    try:
        with _listen(options.port) as listening:
            play(options, listening, sys.stdout)
    except BrokenPipeError:
        raise  # standard output is closed
    except (PrometheusUnavailable, CannotListen, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _listen(requested: int | None) -> socket.socket:
    """Listen on the requested port, by default on 8443 or any free port: other demos may run on this machine."""
    try:
        return listen(LOOPBACK, DEFAULT_PORT if requested is None else requested)
    except CannotListen as error:
        if requested is None:
            return listen(LOOPBACK, 0)
        raise CannotListen(f"{error}; choose another --port") from None

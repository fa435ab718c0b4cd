"""``steadyscale demo``: runs the demo."""

import argparse
import socket
import sys
from typing import Final

from adapter.demo.real_prometheus import PrometheusUnavailable, free_port
from adapter.demo.run import play

DEFAULT_PORT: Final = 8443


def run(options: argparse.Namespace) -> int:
    try:
        socket.getaddrinfo("localhost", None)
    except socket.gaierror:
        sys.stderr.write("localhost cannot be resolved: add the line `127.0.0.1 localhost` to /etc/hosts\n")
        return 1
    try:
        play(options, _choose_port(options.port), sys.stdout)
    except BrokenPipeError:
        raise  # standard output is closed
    except (PrometheusUnavailable, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _choose_port(requested: int | None) -> int:
    try:
        return free_port(DEFAULT_PORT if requested is None else requested)
    except OSError as error:
        if requested is None:
            return free_port()
        message = f"cannot listen on port {requested}: {error.strerror}; choose another --port"
        raise OSError(message) from error

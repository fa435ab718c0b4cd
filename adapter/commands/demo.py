"""``steadyscale demo``: runs the demo."""

import argparse
import sys
from typing import Final

from adapter.demo.real_prometheus import PrometheusUnavailable, free_port
from adapter.demo.run import play

DEFAULT_PORT: Final = 8443


def run(options: argparse.Namespace) -> int:
    try:
        play(options, _choose_port(options.port), sys.stdout)
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

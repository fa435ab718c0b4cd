"""``steadyscale demo``: runs the demo."""

import argparse
import sys
from typing import Final

from adapter.demo.real_prometheus import PrometheusUnavailable, free_port
from adapter.demo.run import DemoOptions, play

DEFAULT_PORT: Final = 8443


def run(options: argparse.Namespace) -> int:
    try:
        port = _choose_port(options.port)
    except OSError as error:
        sys.stderr.write(f"cannot listen on port {options.port}: {error.strerror or error}; choose another --port\n")
        return 1
    try:
        play(
            DemoOptions(port, options.speed, options.once, not options.no_page, options.prometheus, options.keep),
            sys.stdout,
        )
    except PrometheusUnavailable as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"the demo failed: {error.strerror or error}\n")
        return 1
    return 0


def _choose_port(requested: int | None) -> int:
    if requested is not None:
        return free_port(requested)
    try:
        return free_port(DEFAULT_PORT)
    except OSError:
        return free_port()

"""``steadyscale demo``: a day of a shop's queue in a minute, without a cluster."""

import argparse
import sys
from typing import Final

from adapter.demo.real_prometheus import NoPrometheus, free_port
from adapter.demo.run import Wishes, play

USUAL_PORT: Final = 8443


def run(options: argparse.Namespace) -> int:
    """Play the day; return the exit code."""
    try:
        port = _port(options.port)
        wishes = Wishes(port, options.speed, options.once, not options.no_page, options.prometheus, options.keep)
        play(wishes, sys.stdout)
    except NoPrometheus as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"port {options.port or USUAL_PORT}: {error.strerror or error}\n")
        return 1
    return 0


def _port(wanted: int | None) -> int:
    """Take the port that was asked for; if none was, the usual one, or any if somebody has that."""
    if wanted is not None:
        return free_port(wanted)
    try:
        return free_port(USUAL_PORT)
    except OSError:
        return free_port()

"""The command ``steadyscale``."""

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(
        prog="steadyscale", description="Autoscaling that fails safely and explains itself"
    )
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")
    commands.add_parser("demo", help="see it work on this machine, without a cluster")
    parser.parse_args(arguments)
    sys.stdout.write(
        "steadyscale demo: not here yet. What works today is the decision core:\n"
        "  python -m autoscaler conform tests/vectors    runs it against cases computed by Kubernetes' own code\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

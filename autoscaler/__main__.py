"""The autoscaler without its controller: ``python -m autoscaler conform DIR``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from autoscaler.conformance.report import Tally, print_report, run_folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, do what it says, give the exit code."""
    options = _parser().parse_args(arguments)
    folder: Path = options.folder
    if not folder.is_dir():
        sys.stderr.write(f"{folder} is not a folder: name one that holds vector files (*.json)\n")
        return 2
    tally = Tally()
    for report in run_folder(folder):
        tally.add(report)
        sys.stdout.writelines(f"{line}\n" for line in print_report(report))
    if not (tally.passed or tally.failed):
        sys.stdout.write(f"no case was found in {folder}\n")
    sys.stdout.write(f"{tally.closing_line}\n")
    return tally.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m autoscaler", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "conform",
        help="run cases computed by Kubernetes' own code through this one, and show where the two differ",
        description="Runs every vector file found in a folder. Exit code 0: all cases ran and passed; 1: some did not.",
    )
    command.add_argument("folder", metavar="DIR", type=Path, help="a folder with vector files (*.json)")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Command line of the autoscaler package: ``python -m autoscaler conform DIR``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from autoscaler.conformance.report import print_report, run_directory


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Its exit code is 0 if at least one case ran, no section was skipped, and all cases passed."""
    directory: Path = _parser().parse_args(arguments).directory
    if not directory.is_dir():
        sys.stderr.write(f"{directory} is not a directory with vector files (*.json)\n")
        return 2
    passed = failed = not_run = 0
    for report in run_directory(directory):
        passed += report.passed
        failed += len(report.failures)
        not_run += len(report.not_run)
        sys.stdout.writelines(f"{line}\n" for line in print_report(report))
    if not (passed or failed):
        sys.stdout.write(f"no cases found in {directory}\n")
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    return 0 if passed and not failed and not not_run else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m autoscaler", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "conform",
        help="run conformance vectors computed by Kubernetes, and show differences",
        description="Runs every vector file in a directory. Exit code 0: all cases ran and passed; otherwise 1.",
    )
    command.add_argument("directory", metavar="DIR", type=Path, help="directory with vector files (*.json)")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""``steadyscale completion SHELL``: prints the script that completes commands and options."""

import argparse
import sys
from collections.abc import Iterator

import shtab


def run(options: argparse.Namespace) -> int:
    for action in _actions(options.parser):
        if action.metavar == "FILE":
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    sys.stdout.write(shtab.complete(options.parser, options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of its commands."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list; shtab uses this one
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for command in action.choices.values():
                yield from _actions(command)

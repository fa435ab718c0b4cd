"""Tests that need a program: skipped if it is missing, but failed in CI, and summarized in one line per program."""

import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final, NoReturn

import pytest

_REASON: Final = re.compile(r"(?:Skipped: )?missing program: (.+?); (.+)", re.DOTALL)


def missing(program: str, install: str) -> NoReturn:
    """Skip the test because a program is missing; ``install`` is the command that installs it. Fail it in CI."""
    reason = f"missing program: {program}; {install}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def require(program: str, install: str, *, is_installed: bool) -> None:
    """Skip the test if a program is not installed; fail it in CI."""
    if not is_installed:
        missing(program, install)


def summary(reasons: Iterable[str]) -> list[str]:
    """Return a line for each missing program, and one for each other reason to skip tests."""
    lines: Counter[tuple[str, str]] = Counter()
    for reason in reasons:
        found = _REASON.fullmatch(reason)
        lines[(f"{found[1]} not found", f"; {found[2]}") if found else (reason, "")] += 1
    return [
        f"{subject}: {tests} {'test' if tests == 1 else 'tests'} skipped{install}"
        for (subject, install), tests in sorted(lines.items())
    ]

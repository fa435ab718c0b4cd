"""Which tests a run skipped, so that a run on a machine with all programs can be limited to them.

pytest --write-skipped=FILE    write the ids of the skipped tests
pytest --run-skipped=FILE      run only the tests whose ids are in the file
"""

from collections.abc import Iterable
from pathlib import Path

import pytest


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--write-skipped", metavar="FILE", help="write the ids of the skipped tests to a file")
    parser.addoption("--run-skipped", metavar="FILE", help="run only the tests whose ids are in the file")


def write(config: pytest.Config, reports: Iterable[pytest.TestReport]) -> None:
    """Write the ids of the skipped tests if the option asks for it."""
    file = config.getoption("--write-skipped")
    if file:
        Path(file).write_text("".join(f"{report.nodeid}\n" for report in reports), encoding="utf-8")


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep only the tests that were skipped before if the option asks for it.

    An id that no test has is an error: the file is of another version, and tests would be left out.
    """
    file = config.getoption("--run-skipped")
    if not file:
        return
    wanted = set(Path(file).read_text(encoding="utf-8").splitlines())
    unknown = wanted - {item.nodeid for item in items}
    if unknown:
        raise pytest.UsageError(f"{file} lists {len(unknown)} tests that do not exist, for example {min(unknown)}")
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
    items[:] = [item for item in items if item.nodeid in wanted]

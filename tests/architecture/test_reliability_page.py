"""Every row of docs/reliability.md names an existing test, and every bound is that of the code."""

import importlib
import re
from datetime import timedelta
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text()
FAULTS = re.findall(r"^\| (.+) \| (.+) \| `(tests/[\w/.]+\.py)::(\w+)` \|$", PAGE, re.MULTILINE)
BOUNDS = re.findall(r"^\| .+ \| (\d+) s \| `([\w.]+)` \|$", PAGE, re.MULTILINE)


def test_every_row_is_understood():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
    headers = [row for row in rows if row.startswith(("| fault ", "| bound "))]
    assert len(rows) - len(headers) == len(FAULTS) + len(BOUNDS) > 40


@pytest.mark.parametrize(("path", "name"), [(path, name) for _, _, path, name in FAULTS])
def test_row_names_an_existing_test(path: str, name: str) -> None:
    assert f"def {name}(" in (ROOT / path).read_text()


@pytest.mark.parametrize(("seconds", "constant"), BOUNDS)
def test_bound_is_that_of_the_code(seconds: str, constant: str) -> None:
    assert seconds_of(constant) == float(seconds)


def test_every_number_of_seconds_is_a_bound_or_part_of_the_fault():
    bounds = {seconds for seconds, _ in BOUNDS}
    for fault, promise, _, _ in FAULTS:
        assert set(re.findall(r"(\d+) seconds", promise)) <= bounds, fault


@pytest.mark.parametrize("page", ["README.md", "docs/README.md"])
def test_page_is_linked(page: str) -> None:
    assert "reliability.md" in (ROOT / page).read_text()


def seconds_of(constant: str) -> float:
    """Return a constant of a module, or the default of a field of a record, in seconds."""
    module, name = constant.rsplit(".", 1)
    try:
        owner = importlib.import_module(module)
    except ModuleNotFoundError:
        package, record = module.rsplit(".", 1)
        owner = getattr(importlib.import_module(package), record)()
    value = getattr(owner, name)
    return value.total_seconds() if isinstance(value, timedelta) else float(value)

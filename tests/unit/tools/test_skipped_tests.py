"""The selection of tests that another run skipped."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests import skipped_tests


class Config:
    """Stands for pytest's configuration: two options, and the hook that counts deselected tests."""

    def __init__(self, **options: Path) -> None:
        self._options = {f"--{name.replace('_', '-')}": str(value) for name, value in options.items()}
        self.deselected: list[Any] = []
        self.hook = self

    def pytest_deselected(self, items: list[Any]) -> None:
        self.deselected += items

    def getoption(self, name: str) -> str | None:
        return self._options.get(name)


def named(*ids: str) -> list[Any]:
    return [SimpleNamespace(nodeid=name) for name in ids]


def test_tests_that_one_run_skipped_are_run_by_another(tmp_path: Path):
    file = tmp_path / "skipped"
    skipped_tests.write(cast("Any", Config(write_skipped=file)), named("a.py::x", "b.py::y[é ü]"))
    config, items = Config(run_skipped=file), named("a.py::x", "a.py::z", "b.py::y[é ü]")

    skipped_tests.select(cast("Any", config), items)

    assert [item.nodeid for item in items] == ["a.py::x", "b.py::y[é ü]"]
    assert [item.nodeid for item in config.deselected] == ["a.py::z"]


def test_list_of_another_version_is_refused(tmp_path: Path):
    file = tmp_path / "skipped"
    file.write_text("a.py::renamed\n")

    with pytest.raises(pytest.UsageError, match=r"lists 1 tests that do not exist, for example a\.py::renamed"):
        skipped_tests.select(cast("Any", Config(run_skipped=file)), named("a.py::x"))


def test_without_the_options_all_tests_run_and_nothing_is_written(tmp_path: Path):
    config, items = Config(), named("a.py::x", "a.py::z")

    skipped_tests.write(cast("Any", config), items)
    skipped_tests.select(cast("Any", config), items)

    assert len(items) == 2
    assert not list(tmp_path.iterdir())

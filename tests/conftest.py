"""Fixtures of all tests, the order of test files, and the summary of skipped tests."""

import pytest
from hypothesis import settings

from tests import missing_programs, skipped_tests
from tests.control_plane.fixtures import plane

__all__ = ["plane"]

# On a busy machine any example can take long; pytest-timeout ends a test that hangs.
settings.register_profile("steadyscale", deadline=None)
settings.load_profile("steadyscale")


def pytest_addoption(parser: pytest.Parser) -> None:
    skipped_tests.add_options(parser)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run files marked as slow first, so that with several workers none of them is left for the end."""
    skipped_tests.select(config, items)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line per missing program; pytest's own summary has a line for each place that skips."""
    reports = terminalreporter.stats.get("skipped", [])
    skipped_tests.write(terminalreporter.config, reports)
    lines = missing_programs.summary(report.longrepr[2] for report in reports)
    if lines:
        terminalreporter.section("skipped tests")
    for line in lines:
        terminalreporter.write_line(line)

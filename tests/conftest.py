"""Fixtures of all tests, and the order of test files."""

import pytest

from tests.control_plane.fixtures import plane

__all__ = ["plane"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files marked as slow first, so that with several workers none of them is left for the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)

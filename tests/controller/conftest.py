"""Fixtures of the controller tests."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.control_plane.cluster import ControlPlane
from tests.controller.harness import Harness, running_harness
from tests.controller.real_cluster import without_controller_manager


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    async with running_harness() as running:
        yield running


@pytest.fixture(scope="module")
def isolated_plane(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A real API server without controller manager, changed only by the test and the controller."""
    with without_controller_manager(plane) as running:
        yield running

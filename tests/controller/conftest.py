"""Every test of the controller has a stage of its own, in virtual time."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.control_plane.cluster import ControlPlane
from tests.controller.harness import Stage, staging
from tests.controller.real_cluster import alone


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staging() as ready:
        yield ready


@pytest.fixture(scope="module")
def lonely_plane(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Give a real API server that nobody but the test and the controller changes."""
    with alone(plane) as ready:
        yield ready

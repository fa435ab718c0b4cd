"""Every test of the controller has a stage of its own, in virtual time."""

from collections.abc import AsyncIterator

import pytest

from tests.controller.stage import Stage, staging


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staging() as ready:
        yield ready

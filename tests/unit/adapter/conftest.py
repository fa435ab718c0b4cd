"""A call that blocks the loop fails the test that made it."""

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[BlockBuster]:
    with blockbuster_ctx("adapter") as guard:
        yield guard

"""Makes every blocking call of adapter code inside the event loop an error."""

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx


@pytest.fixture(autouse=True)
def blocking_calls_fail() -> Iterator[BlockBuster]:
    with blockbuster_ctx("adapter") as guard:
        yield guard

"""Makes every blocking call of adapter code inside the event loop an error."""

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster

from tests.blocking_calls import detected_blocking_calls


@pytest.fixture(autouse=True)
def blocking_calls_fail() -> Iterator[BlockBuster]:
    with detected_blocking_calls() as detector:
        yield detector

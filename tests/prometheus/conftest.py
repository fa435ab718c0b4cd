"""A Prometheus with fixed data for all tests, and a check for leaked sockets and tasks."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster

from tests.blocking_calls import detected_blocking_calls
from tests.prometheus.failing_server import FailingProxy, failing_proxy
from tests.prometheus.fixed_responses import SAMPLES
from tests.prometheus.server import Server, prometheus, require


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[BlockBuster]:
    with detected_blocking_calls() as detector:
        yield detector


@pytest.fixture(scope="session")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Prometheus whose data never changes; query it at the time ``NOW``."""
    require()
    with prometheus(tmp_path_factory.mktemp("fixed"), samples=SAMPLES) as running:
        yield running


@pytest.fixture
def proxy(fixed: Server) -> Iterator[FailingProxy]:
    with failing_proxy(fixed.url) as proxy:
        yield proxy


@pytest.fixture
async def no_resource_leaks() -> AsyncIterator[None]:
    """Fail if a test leaves sockets or tasks open."""
    before = _open_resources()
    yield
    for _ in range(200):
        if not _has_more(before):
            return
        await asyncio.sleep(0.02)  # servers in this process close their side a moment later
    pytest.fail(f"open before: {before}, now: {_open_resources()}")


def _open_resources() -> tuple[int, int]:
    return _sockets(), len(asyncio.all_tasks())


def _has_more(before: tuple[int, int]) -> bool:
    """Return whether anything is open that was not; resources of an earlier test may be closed by now."""
    return any(now > then for now, then in zip(_open_resources(), before, strict=True))


def _sockets() -> int:
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            count += str(descriptor.readlink()).startswith("socket:")
        except OSError:
            continue
    return count

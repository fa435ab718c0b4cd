"""One Prometheus with fixed data for all tests, and what is left behind by each."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster, blockbuster_ctx

from tests.prometheus.failing_server import Trouble, trouble
from tests.prometheus.fixed_responses import SAMPLES
from tests.prometheus.server import Server, prometheus, require


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[BlockBuster]:
    with blockbuster_ctx("adapter") as guard:
        yield guard


@pytest.fixture(scope="session")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Prometheus whose data never change; ask it as of ``fixed.NOW``."""
    require()
    with prometheus(tmp_path_factory.mktemp("fixed"), samples=SAMPLES) as running:
        yield running


@pytest.fixture
def hop(fixed: Server) -> Iterator[Trouble]:
    with trouble(fixed.url) as told:
        yield told


@pytest.fixture
async def nothing_is_left() -> AsyncIterator[None]:
    """Whatever the test opens is closed when it is over: threads, sockets, tasks."""
    await asyncio.to_thread(lambda: None)  # the loop's own threads are there from the start
    before = _held()
    yield
    for _ in range(200):
        if not _is_more(before):
            return
        await asyncio.sleep(0.02)  # a peer in this process ends a moment later; a scrape comes and goes
    pytest.fail(f"held before: {before}, now: {_held()}, {_threads()}")


def _held() -> tuple[int, int, int]:
    return len(_threads()), _sockets(), len(asyncio.all_tasks())


def _is_more(before: tuple[int, int, int]) -> bool:
    """Say whether anything is held that was not; what an earlier test held may well be gone by now."""
    return any(now > then for now, then in zip(_held(), before, strict=True))


def _threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("prometheus-"))


def _sockets() -> int:
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        try:
            found += str(each.readlink()).startswith("socket:")
        except OSError:
            continue
    return found

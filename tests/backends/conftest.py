"""Every peer there is, each started once; and what each test may leave behind: nothing."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from blockbuster import BlockBuster, blockbuster_ctx

from adapter.app import clock
from adapter.backends.backend import Backend
from adapter.backends.loader import opened
from adapter.config.model import Config, decode
from adapter.rules.query_builder import Query, whole
from adapter.sample import RawSample
from tests.backends.contract import ContractPeer, Json, every_peer
from tests.backends.faulty_proxy import hop

NAME = "it"


class Opened:
    """A backend that is opened as the service opens it: from a document, through everything that checks it."""

    def __init__(self, backend: Backend, peer: ContractPeer) -> None:
        self.backend, self._peer = backend, peer

    async def ask(self, parameters: Json, seconds: float | None = None) -> tuple[RawSample, ...]:
        deadline = timedelta(seconds=self._peer.patience if seconds is None else seconds)
        return await self.backend.fetch(question(self._peer, parameters), deadline)


def configured(peer: ContractPeer, parameters: Json | None = None, **more: object) -> Config:
    rule = {"name": "m", "backend": NAME, **peer.asking(parameters or {})}
    backends = {NAME: {peer.kind: {**peer.settings(), **more}}}
    return decode({"backends": backends, "rules": [rule] if parameters is not None else []})


def question(peer: ContractPeer, parameters: Json) -> Query:
    (rule,) = configured(peer, parameters).rules
    return whole(rule)


@asynccontextmanager
async def backend_of(peer: ContractPeer, **more: object) -> AsyncIterator[Opened]:
    """Open a peer's backend for the length of the block, with more settings than the suite's or other ones."""
    made = opened(NAME, configured(peer, **more).backends[NAME].settings, clock)
    try:
        yield Opened(made, peer)
    finally:
        await made.aclose()


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[BlockBuster]:
    with blockbuster_ctx("adapter") as guard:
        yield guard


@pytest.fixture(
    scope="session",
    params=[pytest.param(peer, id=name, marks=peer.marks) for name, peer in every_peer().items()],
)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContractPeer]:
    folder: Path = tmp_path_factory.mktemp(request.param.kind)
    with hop() as between:
        peer: ContractPeer = request.param(folder, between)
        peer.start()
        try:
            yield peer
        finally:
            between.delegate()
            peer.stop()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases that have no meaning for a peer, each of which the page lists with its reason."""
    left_out = [item for item in items if _is_not_meant(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _is_not_meant(item: pytest.Item) -> bool:
    marker, call = item.get_closest_marker("case"), getattr(item, "callspec", None)
    return marker is not None and call is not None and marker.args[0] in call.params["running"].not_meant


@pytest.fixture
def peer(running: ContractPeer) -> Iterator[ContractPeer]:
    """The peer with nothing wrong with it."""
    running.recover()
    yield running
    running.recover()


@pytest.fixture
async def nothing_is_left() -> AsyncIterator[None]:
    """Whatever the test opens is closed when it is over: threads, sockets, tasks."""
    await asyncio.gather(*(asyncio.to_thread(lambda: None) for _ in range(8)))  # the loop's own threads stay
    before = _held()
    yield
    for _ in range(200):
        if all(now <= then for now, then in zip(_held(), before, strict=True)):
            return
        await asyncio.sleep(0.02)  # a peer in this process ends a moment later
    pytest.fail(f"held before: {before}, now: {_held()}, {_threads()}, {asyncio.all_tasks()}")


def _held() -> tuple[int, int, int]:
    return len(_threads()), _sockets(), len(asyncio.all_tasks())


def _threads() -> list[str]:
    """List threads but for those that every loop has for its own, and those of peers in this process."""
    names = (thread.name for thread in threading.enumerate())
    return sorted(name for name in names if not name.startswith(("asyncio_", "hop", "peer", "MainThread")))


def _sockets() -> int:
    """Count sockets of ours: those that lead to a hop or a peer's own port are counted at our end only."""
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        try:
            found += str(each.readlink()).startswith("socket:")
        except OSError:
            continue
    return found

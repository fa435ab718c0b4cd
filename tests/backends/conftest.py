"""Fixtures for all peers, each started once, and a check for leaked threads, sockets and tasks."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster

from adapter.backends.backend import Backend
from adapter.backends.loader import create_backend
from adapter.config.loading import decode
from adapter.config.model import Config
from adapter.process import clock
from adapter.rules.query_builder import Query, snapshot_query
from adapter.sample import RawSample
from tests.backends.contract import ContractPeer, Json, all_peers
from tests.backends.faulty_proxy import faulty_proxy
from tests.blocking_calls import detected_blocking_calls

NAME = "it"


class OpenBackend:
    """A backend created from a decoded and validated configuration."""

    def __init__(self, backend: Backend, peer: ContractPeer) -> None:
        self.backend, self.peer = backend, peer

    async def fetch(self, parameters: Json, seconds: float | None = None) -> tuple[RawSample, ...]:
        deadline = timedelta(seconds=self.peer.deadline_seconds if seconds is None else seconds)
        return tuple(await self.backend.fetch(query_for(self.peer, parameters), deadline))


def configuration_for(peer: ContractPeer, parameters: Json | None = None, **settings: Any) -> Config:
    rule = {"name": "m", "backend": NAME, **peer.rule_fields(parameters or {})}
    backends = {NAME: {peer.kind: {**peer.settings(), **settings}}}
    return decode({"backends": backends, "rules": [rule] if parameters is not None else []})


def query_for(peer: ContractPeer, parameters: Json) -> Query:
    (rule,) = configuration_for(peer, parameters).rules
    return snapshot_query(rule)


@asynccontextmanager
async def open_backend(peer: ContractPeer, **settings: Any) -> AsyncIterator[OpenBackend]:
    """Create a peer's backend for the block, with additional or changed settings."""
    backend = create_backend(NAME, configuration_for(peer, **settings).backends[NAME].settings, clock)
    try:
        yield OpenBackend(backend, peer)
    finally:
        await backend.aclose()


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[BlockBuster]:
    with detected_blocking_calls() as detector:
        yield detector


@pytest.fixture(
    scope="session",
    params=[pytest.param(peer, id=name, marks=peer.marks) for name, peer in all_peers().items()],
)
def running_peer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContractPeer]:
    folder: Path = tmp_path_factory.mktemp(request.param.kind)
    with faulty_proxy() as proxy:
        peer: ContractPeer = request.param(folder, proxy)
        peer.start()
        try:
            yield peer
        finally:
            proxy.forward()
            peer.stop()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the cases that do not apply to a peer; docs/backends/README.md lists them."""
    deselected = [item for item in items if _is_inapplicable(item)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in deselected]


def _is_inapplicable(item: pytest.Item) -> bool:
    marker, callspec = item.get_closest_marker("case"), getattr(item, "callspec", None)
    if marker is None or callspec is None:
        return False
    return marker.args[0] in callspec.params["running_peer"].inapplicable


@pytest.fixture
def peer(running_peer: ContractPeer) -> Iterator[ContractPeer]:
    """The peer without any failure."""
    running_peer.recover()
    yield running_peer
    running_peer.recover()


@pytest.fixture
async def no_resource_leaks() -> AsyncIterator[None]:
    """Fail if a test leaves threads, sockets or tasks open."""
    await asyncio.gather(*(asyncio.to_thread(lambda: None) for _ in range(8)))  # creates the loop's own threads
    before = _open_resources()
    yield
    for _ in range(200):
        if all(now <= then for now, then in zip(_open_resources(), before, strict=True)):
            return
        await asyncio.sleep(0.02)  # servers in this process close their side a moment later
    pytest.fail(f"open before: {before}, now: {_open_resources()}, {_threads()}, {asyncio.all_tasks()}")


def _open_resources() -> tuple[int, int, int]:
    return len(_threads()), _sockets(), len(asyncio.all_tasks())


def _threads() -> list[str]:
    """Return the threads without those of event loops, of ``shared_limits`` and of peers in this process."""
    names = (thread.name for thread in threading.enumerate())
    ignored = ("asyncio_", "parse_", "faulty-proxy", "peer", "MainThread")
    return sorted(name for name in names if not name.startswith(ignored))


def _sockets() -> int:
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            count += str(descriptor.readlink()).startswith("socket:")
        except OSError:
            continue
    return count

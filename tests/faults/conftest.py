"""Tests that run concurrently: most of their time is spent waiting.

A test of the suite that has the fixture ``faulty`` runs in a thread, with a rig of its own. The first such test of a
file starts all of them; each test then reports its own result. The tests of a file must be in one worker
(``--dist=loadfile``).
"""

import zlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.control_plane.cluster import ControlPlane
from tests.faults.rig import fault_rig, install_manifests

MAX_CONCURRENT = 12
Runs = dict[str, "Future[None]"]
RUNS = pytest.StashKey[Runs]()


@pytest.fixture(scope="session")
def installed(plane: ControlPlane) -> ControlPlane:
    """Install the CRDs and the roles."""
    install_manifests(plane)
    return plane


@pytest.fixture
def faulty(installed: ControlPlane) -> ControlPlane:
    """Mark a test as concurrent; the test receives a FaultRig instead."""
    return installed


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    return namespace_of(request.node)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Return the result of a concurrent test; start all of the file before."""
    if "faulty" not in pyfuncitem.fixturenames:
        return None
    runs = pyfuncitem.session.stash.setdefault(RUNS, Runs())
    if pyfuncitem.nodeid not in runs:
        plane = pyfuncitem.funcargs["faulty"]
        assert isinstance(plane, ControlPlane)
        runs.update(_start(pyfuncitem.session, pyfuncitem.path, plane))
    runs.pop(pyfuncitem.nodeid).result()
    return True


def _start(session: pytest.Session, path: Path, plane: ControlPlane) -> Runs:
    pool, runs = ThreadPoolExecutor(MAX_CONCURRENT, "concurrent test"), Runs()
    for item in session.items:
        if isinstance(item, pytest.Function) and item.path == path and "faulty" in item.fixturenames:
            arguments = item.callspec.params if hasattr(item, "callspec") else {}
            runs[item.nodeid] = pool.submit(_run, plane, namespace_of(item), item.obj, arguments)
    pool.shutdown(wait=False)
    return runs


def _run(plane: ControlPlane, namespace: str, test: Callable[..., None], arguments: dict[str, Any]) -> None:
    flags = getattr(test, "flags", ())
    with fault_rig(plane, namespace, *flags) as rig:
        test(faulty=rig, **arguments)


def namespace_of(item: pytest.Item) -> str:
    return f"faults-{zlib.crc32(item.nodeid.encode()):08x}"

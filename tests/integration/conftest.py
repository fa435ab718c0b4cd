"""One control plane and one process of ours, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.control_plane.cluster import ControlPlane, free_port
from tests.control_plane.fixtures import plane
from tests.integration.service import Service, apply_manifests, service

__all__ = ["plane"]


@pytest.fixture(scope="session")
def port(plane: ControlPlane) -> int:
    """Say where the APIService of the applied manifests points to."""
    chosen = free_port()
    apply_manifests(plane, chosen)
    return chosen


@pytest.fixture(scope="module")
def running(plane: ControlPlane, port: int) -> Iterator[Service]:
    """Run our process for one file of tests."""
    with service(plane, port) as started:
        yield started

"""A Steadyscale process next to a real control plane, registered by its own manifests."""

from collections.abc import Iterator

import pytest

from tests.control_plane.cluster import ControlPlane, free_port
from tests.integration.service import Service, apply_manifests, service


@pytest.fixture(scope="session")
def port(plane: ControlPlane) -> int:
    """Apply the manifests; return the port that their APIService refers to."""
    chosen = free_port()
    apply_manifests(plane, chosen)
    return chosen


@pytest.fixture(scope="module")
def running(plane: ControlPlane, port: int) -> Iterator[Service]:
    """Run one process for all tests of a file."""
    with service(plane, port) as started:
        yield started

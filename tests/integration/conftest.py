"""One process of ours beside the control plane, registered by its own manifests."""

from collections.abc import Iterator

import pytest

from tests.control_plane.cluster import ControlPlane, free_port
from tests.integration.service import Service, apply_manifests, service


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

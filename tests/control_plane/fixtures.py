"""The control plane as a pytest fixture, started once per session."""

from collections.abc import Iterator

import pytest

from tests.control_plane import programs
from tests.control_plane.cluster import ControlPlane, control_plane


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("control-plane"), programs.require()) as running:
        yield running

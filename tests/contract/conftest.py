"""Every contract test runs twice: against the fake API server and against a real one."""

from collections.abc import AsyncIterator

import pytest

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from tests.contract.api import Api
from tests.control_plane.cluster import ControlPlane
from tests.fakes.cluster import Cluster


@pytest.fixture(
    params=[pytest.param("fake", marks=pytest.mark.looptime), pytest.param("real", marks=pytest.mark.apiserver)]
)
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    if request.param == "fake":
        async with Cluster.serving() as cluster, cluster.client() as client:
            yield Api(client, cluster)
    else:
        real: ControlPlane = request.getfixturevalue("plane")
        async with KubeClient.open(await connect(real.kubeconfig("admin"))) as client:
            yield Api(client, real)

"""A watch over TLS that is left before it ends leaves nothing open behind it."""

import asyncio
import gc
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.kube.watch import Watched, follow
from tests.control_plane.cluster import ControlPlane

pytestmark = pytest.mark.apiserver


async def look_and_leave(kubeconfig: Path) -> None:
    async with (
        KubeClient.open(await connect(kubeconfig)) as client,
        aclosing(follow(client, Watched("/api/v1/namespaces/default/configmaps"))) as news,
    ):
        await anext(news)
        with suppress(TimeoutError):
            await asyncio.wait_for(anext(news), 0.1)


def test_thirty_that_look_and_leave_close_their_connections(plane: ControlPlane) -> None:
    for _ in range(30):
        asyncio.run(look_and_leave(plane.kubeconfig("admin")))
    gc.collect()  # what was not closed says so now, and that is an error

"""A watch over TLS that is closed early leaves no open connection."""

import asyncio
import gc
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.kube.watch import ListWatch, list_and_watch
from tests.control_plane.cluster import ControlPlane

pytestmark = pytest.mark.apiserver


async def watch_and_close(kubeconfig: Path) -> None:
    async with (
        KubeClient.open(await connect(kubeconfig)) as client,
        aclosing(list_and_watch(client, ListWatch("/api/v1/namespaces/default/configmaps"))) as events,
    ):
        await anext(events)
        with suppress(TimeoutError):
            await asyncio.wait_for(anext(events), 0.1)


def test_watches_that_are_closed_early_close_their_connections(plane: ControlPlane) -> None:
    for _ in range(30):
        asyncio.run(watch_and_close(plane.kubeconfig("admin")))
    gc.collect()  # an unclosed connection emits a ResourceWarning here, which fails the test

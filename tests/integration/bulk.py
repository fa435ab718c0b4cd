"""Sends many requests to the API server as an administrator, 40 at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from tests.control_plane.cluster import ControlPlane

_CONCURRENT = 40


def send_all(plane: ControlPlane, requests: Callable[[KubeClient], Iterable[Awaitable[object]]]) -> None:
    """Send the requests and wait for all responses."""

    async def send() -> None:
        limit = asyncio.Semaphore(_CONCURRENT)

        async def one(request: Awaitable[object]) -> None:
            async with limit:
                await request

        async with KubeClient.open(await connect(plane.kubeconfig("admin"))) as kube:
            await asyncio.gather(*map(one, requests(kube)))

    asyncio.run(send())

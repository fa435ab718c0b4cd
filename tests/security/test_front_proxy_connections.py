"""Connections with any valid credential: they do not displace those of the API server."""

import ssl
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from adapter.config.model import Limits
from tests.loopback import Loopback, loopback

METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/whole"


class Client:
    """A client that keeps its connection, and counts how often it had to connect."""

    def __init__(self, running: Loopback, headers: dict[str, str], certificate: str = "") -> None:
        tls = ssl.create_default_context(cafile=running.ca)
        if certificate:
            tls.load_cert_chain(*running.credentials(certificate))
        self.connects = 0
        trace = aiohttp.TraceConfig()
        trace.on_connection_create_end.append(self._count)
        connector = aiohttp.TCPConnector(ssl=tls)
        self.session = aiohttp.ClientSession(running.url, connector=connector, headers=headers, trace_configs=[trace])

    async def read(self) -> None:
        async with self.session.get(METRIC) as response:
            assert response.status == 200

    async def _count(self, *_: object) -> None:
        self.connects += 1


async def test_connection_of_the_front_proxy_is_kept_while_tokens_open_many(tmp_path: Path):
    with loopback(tmp_path, Limits(max_connections=8)) as running:
        async with AsyncExitStack() as stack:
            front_proxy = Client(running, {"X-Remote-User": "alice"}, "fp")
            await stack.enter_async_context(front_proxy.session)
            await front_proxy.read()
            for _ in range(10):
                pod = Client(running, {"Authorization": "Bearer good"})
                await stack.enter_async_context(pod.session)
                await pod.read()
            await front_proxy.read()

            assert front_proxy.connects == 1

"""The connections of the API server beside those of other clients, which do not displace or delay them."""

import asyncio
import socket
import ssl
from contextlib import AsyncExitStack, ExitStack
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


async def test_burst_of_new_connections_of_the_front_proxy_is_accepted_beside_many_attackers(tmp_path: Path):
    with loopback(tmp_path, Limits(max_connections=128)) as running, ExitStack() as held:
        async with AsyncExitStack() as stack:
            first, *burst = (Client(running, {"X-Remote-User": "alice"}, "fp") for _ in range(41))
            for client in (first, *burst):
                await stack.enter_async_context(client.session)
            await first.read()  # the server now knows the address of the front proxy
            for number in range(200):
                source = f"127.0.2.{number % 40 + 1}", 0
                held.enter_context(socket.create_connection(("127.0.0.1", running.port), source_address=source))

            await asyncio.gather(*(client.read() for client in burst))

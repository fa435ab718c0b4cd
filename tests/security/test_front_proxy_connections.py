"""Connections with any valid credential: they do not displace those of the API server."""

import ssl
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from adapter.config.model import Limits
from tests.loopback import Loopback, loopback

METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/whole"


def session(running: Loopback, headers: dict[str, str], certificate: str = "") -> aiohttp.ClientSession:
    tls = ssl.create_default_context(cafile=running.ca)
    if certificate:
        tls.load_cert_chain(*running.credentials(certificate))
    return aiohttp.ClientSession(running.url, connector=aiohttp.TCPConnector(ssl=tls), headers=headers)


async def client_port(client: aiohttp.ClientSession) -> int:
    """Read the metric; return the port of the connection that was used."""
    async with client.get(METRIC) as response:
        assert response.status == 200
        assert response.connection is not None
        assert response.connection.transport is not None
        _, port = response.connection.transport.get_extra_info("sockname")
        return int(port)


async def test_connection_of_the_front_proxy_is_kept_while_tokens_open_many(tmp_path: Path):
    with loopback(tmp_path, Limits(max_connections=8)) as running:
        async with AsyncExitStack() as stack:
            front_proxy = await stack.enter_async_context(session(running, {"X-Remote-User": "alice"}, "fp"))
            port = await client_port(front_proxy)
            for _ in range(10):
                pod = await stack.enter_async_context(session(running, {"Authorization": "Bearer good"}))
                await client_port(pod)

            assert await client_port(front_proxy) == port

"""A connection to a server on loopback without TLS and credentials."""

import ssl
from collections.abc import Callable, Mapping

from autoscaler.kube.connection import KubeConnection, suspend_aware_time


def plain_connection(port: int, now: Callable[[], float] = suspend_aware_time) -> KubeConnection:
    async def no_credentials() -> Mapping[str, str]:
        return {}

    return KubeConnection(
        server=f"http://127.0.0.1:{port}",
        tls=ssl.create_default_context(),
        server_name=None,
        proxy=None,
        credentials=no_credentials,
        now=now,
    )

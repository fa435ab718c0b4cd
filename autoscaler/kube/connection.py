"""Where the API server is and how we show who we are: the one file that knows kubernetes-asyncio.

The library is asked for what is tedious and settled (kubeconfig in all its forms, exec plugins, the service account's
rotating token); its generated client is not used. What it leaves to its callers is decided here: no proxy out of the
environment, and a token read again when the server no longer knows it.
"""

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, load_incluster_config, load_kube_config

from autoscaler.kube.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Connection:
    """A cluster's address, how its certificate is verified, and the credentials of this process."""

    server: str
    """Where requests go, without a trailing slash."""

    tls: ssl.SSLContext
    """Verifies the server; holds our client certificate if we have one."""

    server_name: str | None
    """The name to verify instead of the address, where a kubeconfig says so."""

    proxy: str | None
    """The proxy that a kubeconfig names; the environment's is not for traffic inside a cluster."""

    credentials: Callable[[], Awaitable[Mapping[str, str]]]
    """The headers that say who we are; asked for each request, because tokens rotate."""


async def connect(kubeconfig: Path | None = None) -> Connection:
    """Find the cluster: by `kubeconfig` where one is named, as a pod otherwise."""
    settings = Configuration()
    try:
        if kubeconfig is None:
            load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(str(kubeconfig), client_configuration=settings, persist_config=False)
    except (ConfigException, OSError, ValueError) as error:
        raise Unavailable(f"no cluster to connect to: {error}") from error

    async def credentials() -> Mapping[str, str]:
        token = await settings.get_api_key_with_prefix("BearerToken")
        return {"Authorization": token} if token else {}

    return Connection(
        server=str(settings.host).rstrip("/"),
        tls=_tls(settings),
        server_name=settings.tls_server_name,
        proxy=settings.proxy,
        credentials=credentials,
    )


def _tls(settings: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    if not settings.verify_ssl:  # the kubeconfig asked for it in so many words
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context

"""Address of the API server, TLS settings and credentials, loaded from a kubeconfig or the pod's service account.

kubernetes-asyncio is used only to load the configuration: kubeconfig files, exec plugins, rotated tokens. Its Watch
resumes after 410 Gone with the expired resourceVersion instead of a new list. Its leader election uses the wall clock
and never releases the lease. Its generated client builds model objects, where informers keep only a few fields.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, load_incluster_config, load_kube_config

from autoscaler.kube.errors import Unavailable, describe


def suspend_aware_time() -> float:
    """Return a monotonic time that, unlike that of the event loop, advances while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(frozen=True, slots=True)
class KubeConnection:
    """How to reach and authenticate to the API server."""

    server: str
    """The base URL, without a trailing slash."""

    tls: ssl.SSLContext
    """Verifies the server certificate; contains the client certificate, if there is one."""

    server_name: str | None
    """``tls-server-name`` of the kubeconfig: the name to verify instead of the host of the URL."""

    proxy: str | None
    """``proxy-url`` of the kubeconfig. Proxy variables of the environment are ignored."""

    credentials: Callable[[], Awaitable[Mapping[str, str]]]
    """Returns the authentication headers; called for each request, because tokens are rotated."""

    now: Callable[[], float] = suspend_aware_time
    """The clock of leases and of the age of watched objects, in seconds; tests replace it by the event loop's."""


async def connect(kubeconfig: Path | None = None) -> KubeConnection:
    """Load the connection from ``kubeconfig``, or from the pod's service account if it is None."""
    settings = Configuration()
    try:
        if kubeconfig is None:
            load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
        else:
            await asyncio.to_thread(kubeconfig.read_bytes)  # load_kube_config does not fail if the file is missing
            await load_kube_config(str(kubeconfig), client_configuration=settings, persist_config=False)
    except (ConfigException, OSError, ValueError, yaml.YAMLError) as error:
        source = "the pod's service account (outside a pod, set a kubeconfig)" if kubeconfig is None else kubeconfig
        reason = " ".join(str(error).split())
        raise Unavailable(f"cannot load the Kubernetes client configuration from {source}: {reason}") from error

    async def credentials() -> Mapping[str, str]:
        try:
            token = await settings.get_api_key_with_prefix("BearerToken")
        except Exception as error:  # reads files and runs programs
            raise Unavailable(f"cannot load the credentials for the Kubernetes API: {describe(error)}") from error
        return {"Authorization": token} if token else {}

    return KubeConnection(
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
    if not settings.verify_ssl:  # insecure-skip-tls-verify in the kubeconfig
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context

"""Address of the API server, TLS settings and credentials, loaded from a kubeconfig or the pod's service account.

kubernetes-asyncio is used only to load the configuration: kubeconfig files, exec plugins, rotated tokens. Its Watch
resumes after 410 Gone with the expired resourceVersion instead of a new list. Its leader election uses the wall clock
and never releases the lease. Its generated client builds model objects, where informers keep only a few fields.
"""

import asyncio
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, load_kube_config

from autoscaler.kube.errors import RequestNotSent, Unavailable, describe
from autoscaler.kube.service_account import load_service_account


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


async def connect(kubeconfig: Path | None = None, context: str | None = None) -> KubeConnection:
    """Load the connection from ``kubeconfig``, or from the pod's service account if it is None.

    As in the variable KUBECONFIG, ``kubeconfig`` can be several files with ``os.pathsep`` between them.
    """
    settings = Configuration()
    try:
        if kubeconfig is None:
            load_service_account(settings)
        else:
            current = await asyncio.to_thread(_current_context, str(kubeconfig).split(os.pathsep))
            if not (context or current):
                raise ConfigException("it has no current-context; set one with kubectl config use-context NAME")  # noqa: TRY301
            await load_kube_config(str(kubeconfig), context or current, settings, persist_config=False)
        tls = _tls(settings)
    except Exception as error:  # kubernetes-asyncio raises AttributeError, KeyError and others for unexpected content
        source = "the pod's service account (outside a pod, set a kubeconfig)" if kubeconfig is None else kubeconfig
        reason = " ".join((str(error) or type(error).__name__).split()).removesuffix(".")
        raise Unavailable(f"cannot load the Kubernetes client configuration from {source}: {reason}") from error

    async def credentials() -> Mapping[str, str]:
        try:
            token = await settings.get_api_key_with_prefix("BearerToken")
        except Exception as error:  # reads files and runs programs
            raise RequestNotSent(f"cannot load the credentials for the Kubernetes API: {describe(error)}") from error
        return {"Authorization": token} if token else {}

    return KubeConnection(
        server=str(settings.host).rstrip("/"),
        tls=tls,
        server_name=settings.tls_server_name,
        proxy=settings.proxy,
        credentials=credentials,
    )


def _current_context(files: Sequence[str]) -> str | None:
    """Return the first current-context, as kubectl does; raise an error with a plain message if one is no kubeconfig.

    kubernetes-asyncio checks the details, and would use the last current-context.
    """
    contents = [_content(Path(file)) for file in files]
    return next((content["current-context"] for content in contents if content.get("current-context")), None)


def _content(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_bytes())
    except OSError as error:
        raise ConfigException(error.strerror) from error
    except yaml.MarkedYAMLError as error:
        line = f": line {error.problem_mark.line + 1}: {error.problem}" if error.problem_mark else ""
        raise ConfigException(f"it is not YAML{line}") from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise ConfigException("it is not YAML") from error
    if not isinstance(content, dict):
        raise ConfigException("it is not a kubeconfig")
    return content


def _tls(settings: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    if not settings.verify_ssl:  # insecure-skip-tls-verify in the kubeconfig
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context

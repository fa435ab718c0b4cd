"""The HTTP client of commands that connect to the running service: address, credentials, TLS, error messages."""

import argparse
import asyncio
import os
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import aiohttp

from autoscaler.kube.connection import connect
from autoscaler.kube.errors import KubeError

REQUEST_FAILED: Final = 2
"""The exit code if the service cannot be reached or rejects the request."""

_SERVICE_ACCOUNT_TOKEN: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_PORT_FORWARD: Final = "kubectl port-forward -n steadyscale deploy/steadyscale 6443"
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30)


class RequestFailed(Exception):
    """The service could not be reached, or rejected the request."""


def run_client(command: Callable[[argparse.Namespace], Awaitable[int]], options: argparse.Namespace) -> int:
    """Run a command that connects to the service; print errors and return the exit code."""

    async def run() -> int:
        return await command(options)

    try:
        return asyncio.run(run())
    except (RequestFailed, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return REQUEST_FAILED


def object_path(prefix: str, key: str, example: str) -> str:
    """Return the path for a NAMESPACE/NAME argument; raise ``RequestFailed`` if it has another form."""
    namespace, _, name = key.partition("/")
    if not namespace or not name or "/" in name:
        raise RequestFailed(f"{key!r} is not NAMESPACE/NAME, such as {example}")
    return f"{prefix}/{quote(namespace, safe='')}/{quote(name, safe='')}"


@dataclass(frozen=True, slots=True)
class ServiceClient:
    """The address of the service, and how to authenticate."""

    server: str
    tls: ssl.SSLContext
    credentials: Callable[[], Awaitable[Mapping[str, str]]]
    """Returns the authentication headers; called for each request, because tokens rotate."""

    @classmethod
    async def from_options(cls, options: argparse.Namespace) -> "ServiceClient":
        """Authenticate as the user of the kubeconfig, with the token file, or in a pod with its service account."""
        server = options.server.rstrip("/")
        if options.kubeconfig is not None:
            try:
                user = await connect(options.kubeconfig)
            except KubeError as error:
                raise RequestFailed(str(error)) from error
            return cls(server, await asyncio.to_thread(_tls, user.tls, server, options.ca_file), user.credentials)

        async def credentials() -> Mapping[str, str]:
            return await asyncio.to_thread(_bearer_token, options.token_file)

        return cls(server, await asyncio.to_thread(_tls, None, server, options.ca_file), credentials)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Send a GET request; raise ``RequestFailed`` with the reason if it fails."""
        try:
            async with (
                aiohttp.ClientSession(timeout=_TIMEOUT, headers=await self.credentials()) as session,
                session.get(self.server + path, params=query, ssl=self.tls) as response,
            ):
                body: dict[str, Any] = await response.json(content_type=None)
                if response.status != 200:
                    raise RequestFailed(f"{response.status}: {body.get('message', response.reason)}")
                return body
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise RequestFailed(f"{self.server}: {_describe(error)}") from error


def _describe(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"{error.certificate_error}; pass the CA of the service's certificate with --ca-file"
        case aiohttp.ClientConnectorError():
            number = error.os_error.errno or 0
            reason = os.strerror(number) if number > 0 else str(error.os_error)
            return f"{reason}; to reach the service in a cluster, run `{_PORT_FORWARD}`, or set --server"
        case _:
            return str(error) or f"no response within {_TIMEOUT.total:g}s"


def _bearer_token(file: Path | None) -> Mapping[str, str]:
    if file is None and not _SERVICE_ACCOUNT_TOKEN.exists():
        return {}
    return {"Authorization": f"Bearer {(file or _SERVICE_ACCOUNT_TOKEN).read_text().strip()}"}


def _tls(user: ssl.SSLContext | None, server: str, ca_file: Path | None) -> ssl.SSLContext:
    """Return the TLS context; without a CA, the certificate is not verified on loopback, as with port-forward."""
    tls = user or ssl.create_default_context()
    if ca_file is not None:
        tls.load_verify_locations(cafile=str(ca_file))
    elif urlsplit(server).hostname in _LOOPBACK:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls

"""The HTTP client of commands that connect to the running service: address, credentials, TLS, error messages."""

import asyncio
import os
import ssl
import sys
from argparse import Namespace as Options
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlsplit

import aiohttp

from adapter.commands.registered_service import RequestFailed, registered_service
from autoscaler.kube.connection import connect
from autoscaler.kube.errors import KubeError

Credentials: TypeAlias = Callable[[], Awaitable[Mapping[str, str]]]

REQUEST_FAILED: Final = 2
"""The exit code if the service cannot be reached or rejects the request."""

_SERVICE_ACCOUNT_TOKEN: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_PORT_FORWARD: Final = "kubectl port-forward -n steadyscale deploy/steadyscale 6443"
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30)


def client_command(command: Callable[[Options], Coroutine[None, None, int]]) -> Callable[[Options], int]:
    """Make a coroutine function that connects to the service a command: print errors, and return the exit code."""

    def run(options: Options) -> int:
        try:
            return asyncio.run(command(options))
        except (RequestFailed, KubeError) as error:
            sys.stderr.write(f"{error}\n")
        except OSError as error:
            sys.stderr.write(f"{error.filename}: {error.strerror}\n" if error.filename else f"{error}\n")
        return REQUEST_FAILED

    return run


def object_path(prefix: str, key: str, example: str) -> str:
    """Return the path for a NAMESPACE/NAME argument; raise ``RequestFailed`` if it has another form."""
    namespace, _, name = key.partition("/")
    if not namespace or not name or "/" in name:
        raise RequestFailed(f"{key!r} does not have the form NAMESPACE/NAME, such as {example}")
    return f"{prefix}/{quote(namespace, safe='')}/{quote(name, safe='')}"


@dataclass(frozen=True, slots=True)
class ServiceClient:
    """The address of the service, and how to verify it and to authenticate."""

    server: str
    tls: ssl.SSLContext
    credentials: Credentials
    """Returns the authentication headers; called for each request, because tokens rotate."""

    server_name: str | None = None
    """The name to verify in the service's certificate instead of the host of the URL."""

    @classmethod
    async def from_options(cls, options: Options) -> "ServiceClient":
        """Authenticate as the user of the kubeconfig, with the token file, or in a pod with its service account."""
        url, server = urlsplit(options.server), options.server.rstrip("/")
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise RequestFailed(f"--server: {options.server!r} is not a URL such as https://localhost:6443")
        tls = ssl.create_default_context()
        credentials: Credentials = partial(asyncio.to_thread, _bearer_token, options.token_file)
        if options.kubeconfig is not None:
            user = await connect(options.kubeconfig)
            tls, credentials = user.tls, user.credentials
            tls.verify_mode = ssl.CERT_REQUIRED  # insecure-skip-tls-verify applies only to the API server
            tls.check_hostname = True
        if url.scheme == "http":
            if options.token_file or options.kubeconfig:
                raise RequestFailed(f"--server: {options.server!r}: credentials are sent only to https URLs")
            return cls(server, tls, _no_credentials)
        if options.ca_file is not None:
            await asyncio.to_thread(_load_ca_file, tls, options.ca_file)
        elif url.hostname in _LOOPBACK:
            service = await registered_service(options.kubeconfig)
            tls.load_verify_locations(cadata=service.ca)
            return cls(server, tls, credentials, service.server_name)
        return cls(server, tls, credentials)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Send a GET request; raise ``RequestFailed`` with the reason if it fails."""
        try:
            async with (
                aiohttp.ClientSession(timeout=_TIMEOUT, headers=await self.credentials()) as session,
                session.get(
                    self.server + path,
                    params=query,
                    ssl=self.tls,
                    server_hostname=self.server_name,
                    allow_redirects=False,  # a redirect could lead the credentials elsewhere
                ) as response,
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
            number = error.os_error.errno or 0  # asyncio replaces the strerror of a refused connection
            reason = os.strerror(number) if number > 0 else error.os_error.strerror
            return f"{reason}; to reach the service in a cluster, run `{_PORT_FORWARD}`, or set --server"
        case _:
            return str(error) or f"no response within {_TIMEOUT.total:g}s"


def _bearer_token(file: Path | None) -> Mapping[str, str]:
    if file is None and not _SERVICE_ACCOUNT_TOKEN.exists():
        return {}
    return {"Authorization": f"Bearer {(file or _SERVICE_ACCOUNT_TOKEN).read_text().strip()}"}


async def _no_credentials() -> Mapping[str, str]:
    return {}


def _load_ca_file(tls: ssl.SSLContext, ca_file: Path) -> None:
    try:
        tls.load_verify_locations(cadata=ca_file.read_text())
    except (ssl.SSLError, ValueError) as error:
        raise RequestFailed(f"--ca-file: {ca_file} contains no certificate in PEM format") from error

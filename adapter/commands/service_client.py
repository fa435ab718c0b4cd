"""The HTTP client of commands that connect to the running service: address, credentials, TLS, error messages."""

import asyncio
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
from yarl import URL

from adapter.commands.registered_service import RequestFailed, registered_service
from adapter.commands.responses import decoded
from adapter.commands.user_kubeconfig import user_kubeconfig
from adapter.debug.connection_failure import connection_failure
from adapter.errors import CannotListen
from adapter.server.debug_api_paths import aggregated_path
from autoscaler.kube.connection import connect
from autoscaler.kube.errors import KubeError

Credentials: TypeAlias = Callable[[], Awaitable[Mapping[str, str]]]

REQUEST_FAILED: Final = 2
"""The exit code if the service cannot be reached or rejects the request."""

_SERVICE_ACCOUNT_TOKEN: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_UNREACHABLE: Final = (
    "to reach the service in a cluster, run the command without --server, or first "
    "`kubectl port-forward -n steadyscale deploy/steadyscale 6443`"
)
_CA_FILE: Final = "pass the CA of the service's certificate with --ca-file"
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30)


def client_command(command: Callable[[Options], Coroutine[None, None, int]]) -> Callable[[Options], int]:
    """Make a coroutine function that connects to the service a command: print errors, and return the exit code."""

    def run(options: Options) -> int:
        try:
            return asyncio.run(command(options))
        except (RequestFailed, CannotListen, KubeError) as error:
            sys.stderr.write(f"{error}\n")
        except BrokenPipeError:
            raise  # standard output is closed
        except OSError as error:
            reason = error.strerror or str(error)  # not str(error) alone, which begins with [Errno 98]
            sys.stderr.write(f"{error.filename}: {reason}\n" if error.filename else f"{reason}\n")
        return REQUEST_FAILED

    return run


def object_path(prefix: str, key: str, example: str, namespace: str | None = None) -> str:
    """Return the path for a NAMESPACE/NAME argument, or a NAME with --namespace; raise ``RequestFailed`` otherwise."""
    full = f"{namespace}/{key}" if namespace and "/" not in key else key
    found, _, name = full.partition("/")
    if not found or not name or "/" in name:
        hint = "" if "/" in key else "; a NAME needs -n NAMESPACE"
        raise RequestFailed(f"{key!r} does not have the form NAMESPACE/NAME, such as {example}{hint}")
    if namespace not in {None, found}:
        raise RequestFailed(f"--namespace: {namespace!r} is not the namespace of {key!r}: omit one of them")
    return f"{prefix}/{quote(found, safe='')}/{quote(name, safe='')}"


@dataclass(frozen=True, slots=True)
class ServiceClient:
    """The address of the service, and how to verify it and to authenticate."""

    server: str
    tls: ssl.SSLContext
    credentials: Credentials
    """Returns the authentication headers; called for each request, because tokens rotate."""

    server_name: str | None = None
    """The name to verify in the certificate instead of the host of the URL."""

    proxy: str | None = None
    api_path: Callable[[str], str] = str
    """Converts a path below ``/debug`` to the path at the server."""

    @classmethod
    async def from_options(cls, options: Options) -> "ServiceClient":
        """Connect through the API server with the user's kubeconfig, in a pod its service account, or to --server."""
        if options.server is not None:
            return await _direct(options)
        for option in ("token_file", "ca_file"):
            if getattr(options, option) is not None:
                raise RequestFailed(f"--{option.replace('_', '-')} needs --server; without it, use --kubeconfig")
        kubeconfig = await asyncio.to_thread(user_kubeconfig, options.kubeconfig)
        user = await connect(kubeconfig, options.context)
        return cls(user.server, user.tls, user.credentials, user.server_name, user.proxy, aggregated_path)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Send a GET request for a path below ``/debug``; raise ``RequestFailed`` with the reason if it fails."""
        try:
            async with (
                aiohttp.ClientSession(timeout=_TIMEOUT, headers=await self.credentials()) as session,
                session.get(
                    URL(self.server + self.api_path(path), encoded=True),
                    params=query,
                    ssl=self.tls,
                    server_hostname=self.server_name,
                    proxy=self.proxy,
                    allow_redirects=False,  # a redirect could lead the credentials elsewhere
                ) as response,
            ):
                return decoded(response.status, await response.read(), is_aggregated=self.api_path is aggregated_path)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RequestFailed(f"{self.server}: {self._describe(error)}") from error

    def _describe(self, error: Exception) -> str:
        is_aggregated, reason = self.api_path is aggregated_path, connection_failure(error)
        match error:
            case aiohttp.ClientConnectorCertificateError():
                hint = "check the cluster of the kubeconfig" if is_aggregated else _CA_FILE
                return f"{reason}; {hint}"
            case aiohttp.ClientConnectorError():
                hint = "check the kubeconfig, as `kubectl version` does" if is_aggregated else _UNREACHABLE
                return f"{reason}; {hint}"
            case _:
                return reason or f"no response within {_TIMEOUT.total:g}s"


async def _direct(options: Options) -> ServiceClient:
    """Return a client of --server, with the credentials of the kubeconfig, the token file or the service account."""
    url, server = urlsplit(options.server), options.server.rstrip("/")
    if url.scheme not in {"http", "https"} or not url.hostname:
        raise RequestFailed(f"--server: {options.server!r} is not a URL such as https://localhost:6443")
    tls = ssl.create_default_context()
    credentials: Credentials = partial(asyncio.to_thread, _bearer_token, options.token_file)
    if options.kubeconfig is not None:
        user = await connect(options.kubeconfig, options.context)
        tls, credentials = user.tls, user.credentials
        tls.verify_mode = ssl.CERT_REQUIRED  # insecure-skip-tls-verify applies only to the API server
        tls.check_hostname = True
    if url.scheme == "http":
        if options.token_file or options.kubeconfig:
            raise RequestFailed(f"--server: {options.server!r}: credentials are sent only to https URLs")
        return ServiceClient(server, tls, _no_credentials)
    if options.ca_file is not None:
        await asyncio.to_thread(_load_ca_file, tls, options.ca_file)
    elif url.hostname in _LOOPBACK:
        service = await registered_service(options.kubeconfig)
        tls.load_verify_locations(cadata=service.ca)
        return ServiceClient(server, tls, credentials, service.server_name)
    return ServiceClient(server, tls, credentials)


def _bearer_token(file: Path | None) -> Mapping[str, str]:
    if file is None and not _SERVICE_ACCOUNT_TOKEN.exists():
        return {}
    return {"Authorization": f"Bearer {(file or _SERVICE_ACCOUNT_TOKEN).read_text(encoding='utf-8').strip()}"}


async def _no_credentials() -> Mapping[str, str]:
    return {}


def _load_ca_file(tls: ssl.SSLContext, ca_file: Path) -> None:
    try:
        tls.load_verify_locations(cadata=ca_file.read_text(encoding="utf-8"))
    except (ssl.SSLError, ValueError) as error:
        raise RequestFailed(f"--ca-file: {ca_file} contains no certificate in PEM format") from error

"""Where the running service is, who we say that we are, and one question to it: what every asking command needs."""

import argparse
import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from autoscaler.kube.connection import connect
from autoscaler.kube.errors import KubeError

UNREACHABLE: Final = 2
"""The exit code if the service could not be asked."""

_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_FORWARD: Final = "`kubectl port-forward -n steadyscale deploy/steadyscale 6443`"
_PATIENCE: Final = aiohttp.ClientTimeout(total=30)


class AskFailed(Exception):
    """The service did not answer the question."""


@dataclass(frozen=True, slots=True)
class Service:
    """Where the service is, and how to show who we are."""

    server: str
    tls: ssl.SSLContext
    credentials: Callable[[], Awaitable[Mapping[str, str]]]
    """The headers that say who we are; asked each time, because tokens rotate."""

    @classmethod
    async def of(cls, options: argparse.Namespace) -> "Service":
        """Take the command line's word: a kubeconfig's user, a token, or in a pod its own."""
        server = options.server.rstrip("/")
        if options.kubeconfig is not None:
            try:
                user = await connect(options.kubeconfig)
            except KubeError as error:
                raise AskFailed(str(error)) from error
            return cls(server, await asyncio.to_thread(_tls, user.tls, server, options.ca_file), user.credentials)

        async def credentials() -> Mapping[str, str]:
            return await asyncio.to_thread(_bearer, options.token_file)

        return cls(server, await asyncio.to_thread(_tls, None, server, options.ca_file), credentials)

    async def ask(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Ask one question; raise ``AskFailed`` with the service's own words if it refuses."""
        try:
            async with (
                aiohttp.ClientSession(timeout=_PATIENCE, headers=await self.credentials()) as session,
                session.get(self.server + path, params=query, ssl=self.tls) as response,
            ):
                answer: dict[str, Any] = await response.json(content_type=None)
                if response.status != 200:
                    raise AskFailed(f"{response.status}: {answer.get('message', 'no reason was given')}")
                return answer
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise AskFailed(f"{self.server}: {_in_words(error)}") from error


def _in_words(error: Exception) -> str:
    """Say what went wrong as a person would, without what only a programmer wants to see."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"{error.certificate_error}; name who signed its certificate with --ca-file"
        case aiohttp.ClientConnectorError():
            number = error.os_error.errno or 0
            why = os.strerror(number) if number > 0 else str(error.os_error)
            return f"{why}; is the service there? Perhaps {_FORWARD} is missing"
        case _:
            return str(error) or "no answer in time"


def _bearer(file: Path | None) -> Mapping[str, str]:
    """Read the token that was named, or in a pod its own."""
    if file is None and not _SERVICE_ACCOUNT.exists():
        return {}
    return {"Authorization": f"Bearer {(file or _SERVICE_ACCOUNT).read_text().strip()}"}


def _tls(user: ssl.SSLContext | None, server: str, ca_file: Path | None) -> ssl.SSLContext:
    """Say how to verify the service. On loopback there is nobody between, and without a CA nothing to verify by."""
    tls = user or ssl.create_default_context()
    if ca_file is not None:
        tls.load_verify_locations(cafile=str(ca_file))
    elif urlsplit(server).hostname in _LOOPBACK:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls

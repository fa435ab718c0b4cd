"""``steadyscale metric NAMESPACE/NAME [-l SELECTOR]``: asks the running service what a metric is now, and why."""

import argparse
import asyncio
import json
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO
from urllib.parse import quote, urlsplit

import aiohttp

from adapter.debug.text import lines

UNREADABLE: Final = 1
UNREACHABLE: Final = 2
_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_PATIENCE: Final = aiohttp.ClientTimeout(total=30)


class AskFailed(Exception):
    """The service did not answer the question."""


@dataclass(frozen=True, slots=True)
class Service:
    """Where the service is, and who we say that we are."""

    server: str
    token: str = ""
    ca_file: Path | None = None

    @classmethod
    def of(cls, options: argparse.Namespace) -> "Service":
        """Take the command line's word, and a pod's own token where there is one."""
        file = options.token_file or (_SERVICE_ACCOUNT if _SERVICE_ACCOUNT.exists() else None)
        return cls(options.server.rstrip("/"), file.read_text().strip() if file else "", options.ca_file)

    def tls(self) -> ssl.SSLContext:
        """Say how to verify the service. On loopback there is nobody between, and without a CA nothing to verify by."""
        tls = ssl.create_default_context(cafile=None if self.ca_file is None else str(self.ca_file))
        if self.ca_file is None and urlsplit(self.server).hostname in _LOOPBACK:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        return tls


def run(options: argparse.Namespace) -> int:
    """Ask, and write the answer; return 0 if the metric has a value now."""
    try:
        service = Service.of(options)
        return asyncio.run(metric(options, service, service.tls(), sys.stdout))
    except (AskFailed, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return UNREACHABLE


async def metric(options: argparse.Namespace, service: Service, tls: ssl.SSLContext, out: TextIO) -> int:
    """Ask, and write the answer; return 0 if the metric has a value now."""
    namespace, _, name = options.metric.partition("/")
    if not namespace or not name:
        raise AskFailed(f"{options.metric!r} is not NAMESPACE/NAME, such as shop/queue-depth")
    path = f"/debug/metrics/{quote(namespace, safe='')}/{quote(name, safe='')}"
    told = await _ask(service, tls, path, {"labelSelector": options.selector} if options.selector else {})
    if options.output == "json":
        out.write(json.dumps(told, indent=2) + "\n")
    else:
        out.writelines(f"{line}\n" for line in lines(told))
    return 0 if told["error"] is None else UNREADABLE


async def _ask(service: Service, tls: ssl.SSLContext, path: str, query: Mapping[str, str]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {service.token}"} if service.token else {}
    try:
        async with (
            aiohttp.ClientSession(timeout=_PATIENCE) as session,
            session.get(service.server + path, params=query, headers=headers, ssl=tls) as response,
        ):
            answer: dict[str, Any] = await response.json(content_type=None)
            if response.status != 200:
                raise AskFailed(f"{response.status}: {answer.get('message', 'no reason was given')}")
            return answer
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise AskFailed(f"{service.server}: {str(error) or 'no answer in time'}") from error

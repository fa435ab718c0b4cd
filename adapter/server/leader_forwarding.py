"""Forwarding of requests to the leader, so that every replica serves requests about decisions.

Only the leader, or with shards the holder of the shard, knows the decisions. Its identity in the Lease contains its
address. The caller was authorized by this process for exactly what the path names, so the request is sent with the
credentials of this process. They are sent only to a server with a certificate by which the API server verifies the
service.
"""

import asyncio
import logging
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

from adapter.debug.connection_failure import connection_failure
from adapter.debug.formatting import Json
from adapter.server.request_context import RequestContext
from adapter.tls.registration import API_SERVICES, RegisteredService, api_service_path
from autoscaler.controller.identity import leader_address
from autoscaler.controller.run import ControllerProcess
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import KubeConnection
from autoscaler.kube.errors import Forbidden, KubeError, NotFound, TooManyRequests, Unavailable

log = logging.getLogger(__name__)

FORWARDED: Final = "X-Steadyscale-Forwarded"
"""The header of a forwarded request, which is not forwarded again: two replicas can disagree about the leader."""

_ACCEPTED: Final = frozenset({200, 304, 400, 404})
"""Responses of the leader that are passed on; after any other one, this process responds itself."""

_REQUEST_HEADERS: Final = ("Accept", "Accept-Encoding", "If-None-Match")
_HOP_BY_HOP: Final = frozenset({"connection", "content-length", "date", "server", "transfer-encoding", "audit-id"})
_CONNECT_SECONDS: Final = 2.0
_READ_SECONDS: Final = 2.0
_VERIFIED_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 10.0
_NAMESPACE_PART: Final = 3


class NotForwarded(str):
    """Why this process responds itself; empty if it is the leader."""

    __slots__ = ()


@dataclass(slots=True)
class Leadership:
    """What this process knows about the processes that control autoscalers; nothing without a controller."""

    own_address: str
    """HOST:PORT at which other replicas reach this process; empty if it is not known."""

    controller: ControllerProcess | None = None

    def identity(self, namespace: str = "") -> str:
        """Return the identity of the process that controls a namespace; empty if it is not known.

        Without a namespace it is the leader, which does not exist with shards.
        """
        if self.controller is None:
            return ""
        return self.controller.holder(namespace) if namespace else self.controller.leader

    def is_own(self, namespace: str = "") -> bool:
        """Return whether this process controls a namespace, or without one, any autoscalers."""
        if self.controller is None:
            return False
        return self.controller.controls(namespace) if namespace else self.controller.is_leader

    def peers(self) -> tuple[str, ...]:
        """Return the addresses of the other processes that control shards."""
        identities = () if self.controller is None else self.controller.shard_holders()
        return tuple(sorted(filter(None, map(leader_address, identities))))


@dataclass(slots=True)
class LeaderForwarding:
    """Sends requests to the leader."""

    leadership: Leadership
    kube: KubeClient
    credentials: Callable[[], Awaitable[Mapping[str, str]]]
    session: aiohttp.ClientSession
    _verified: tuple[float, ssl.SSLContext, str] | None = None
    """When the APIService was read, and what it contains."""

    _logged: str = ""
    """The last reason that was logged; empty after a response."""

    async def forward(
        self, context: RequestContext, seconds: float | None = 5, accepted: Collection[int] = _ACCEPTED
    ) -> web.Response | NotForwarded:
        """Return the leader's response to a request below ``/debug``, or why there is none."""
        namespace = namespace_of(context.path)
        identity = self.leadership.identity(namespace)
        address = leader_address(identity)
        if FORWARDED in context.request.headers or self.leadership.is_own(namespace):
            return NotForwarded("")
        if not identity:
            return NotForwarded("there is no leader")
        if not address:
            return NotForwarded("the address of the leader is not known: POD_IP is not set in its environment")
        if address == self.leadership.own_address:
            return NotForwarded("")
        try:
            url = URL(f"https://{address}").with_path(context.path).with_query(context.query)
            if url.path != context.path:  # ".." would name another resource than the one that was authorized
                return NotForwarded("")
            async with asyncio.timeout(seconds):
                response, self._logged = await self._send(context, url, seconds, accepted), ""
        except _FAILURES as error:
            return self._not_forwarded(address, error)
        return response

    async def get(self, address: str, path: str, query: Mapping[str, str], seconds: float) -> Json | NotForwarded:
        """Return the JSON object with which another replica responds for itself, or why there is none."""
        try:
            url = URL(f"https://{address}").with_path(path).with_query(query)
            async with asyncio.timeout(seconds):
                response = await self._request(url, {"Accept": "application/json"}, seconds)
                content = msgspec.json.decode(bytes(response.body), type=dict[str, Any])  # type: ignore[arg-type]
        except _FAILURES as error:
            return self._not_forwarded(address, error)
        return content

    def _not_forwarded(self, address: str, error: Exception) -> NotForwarded:
        if isinstance(error, _Rejected):
            reason = f"it responded with {error}"
        else:
            reason = connection_failure(error) or "no response in time"
        if reason != self._logged:  # pages repeat their requests
            log.warning("forwarding a request to the leader failed", extra={"address": address, "error": reason})
        self._logged = reason
        return NotForwarded(f"{address}: {reason}")

    def first(
        self, handler: Callable[[RequestContext], Awaitable[web.StreamResponse]], seconds: float | None = 5
    ) -> Callable[[RequestContext], Awaitable[web.StreamResponse]]:
        """Return a handler that forwards to the leader first, and calls ``handler`` if it does not respond."""

        async def handle(context: RequestContext) -> web.StreamResponse:
            response = await self.forward(context, seconds)
            return await handler(context) if isinstance(response, NotForwarded) else response

        return handle

    async def _send(
        self, context: RequestContext, url: URL, seconds: float | None, accepted: Collection[int]
    ) -> web.Response:
        own = context.request.headers
        headers = {name: own[name] for name in _REQUEST_HEADERS if name in own}
        return await self._request(url, headers, seconds, accepted)

    async def _request(
        self, url: URL, headers: Mapping[str, str], seconds: float | None, accepted: Collection[int] = _ACCEPTED
    ) -> web.Response:
        tls, server_name = await self._tls()
        identity = {"Accept-Encoding": "identity"}  # aiohttp would accept what the caller does not
        async with self.session.get(
            url,
            headers={**identity, **headers, **await self.credentials(), FORWARDED: "1"},
            ssl=tls,
            server_hostname=server_name,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=seconds, connect=_CONNECT_SECONDS),
        ) as response:
            if response.status not in accepted:
                raise _Rejected(response.status)
            copied = {name: value for name, value in response.headers.items() if name.lower() not in _HOP_BY_HOP}
            return web.Response(status=response.status, headers=copied, body=await response.read())

    async def _tls(self) -> tuple[ssl.SSLContext, str]:
        """Return how the API server verifies the service; ``caBundle`` contains the next CA before it is used.

        While the API server does not respond, the last APIService stays in use.
        """
        now = asyncio.get_running_loop().time()
        if self._verified is None or now > self._verified[0] + _VERIFIED_SECONDS:
            try:
                async with asyncio.timeout(_READ_SECONDS):
                    service = await self._registered_service()
            except (TooManyRequests, Unavailable, TimeoutError):
                if self._verified is None:
                    raise
                self._verified = now - _VERIFIED_SECONDS + _RETRY_SECONDS, *self._verified[1:]
            else:
                self._verified = now, ssl.create_default_context(cadata=service.ca), service.server_name
        return self._verified[1:]

    async def _registered_service(self) -> RegisteredService:
        for name in reversed(API_SERVICES[1:]):
            with suppress(NotFound, Forbidden, ValueError):
                return RegisteredService.parse(await self.kube.get(api_service_path(name)))
        return RegisteredService.parse(await self.kube.get(api_service_path(API_SERVICES[0])))


@asynccontextmanager
async def leader_forwarding(
    leadership: Leadership, kube: KubeClient, connection: KubeConnection
) -> AsyncIterator[LeaderForwarding]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False) as session:
        yield LeaderForwarding(leadership, kube, connection.credentials, session)


def serving_address(port: int) -> str:
    """Return the address at which other replicas reach this one: the variable ``POD_IP``; empty without it."""
    host = os.environ.get("POD_IP", "")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}" if host else ""


def namespace_of(path: str) -> str:
    """Return the namespace of an autoscaler or a list of metrics in a path below ``/debug``; empty if it has none."""
    parts = path.split("/")
    return parts[3] if len(parts) > _NAMESPACE_PART and parts[2] in {"autoscalers", "history", "metrics"} else ""


class _Rejected(Exception):
    """The leader responded with an unexpected status."""


_FAILURES: Final = (aiohttp.ClientError, KubeError, OSError, ValueError, msgspec.MsgspecError, _Rejected)

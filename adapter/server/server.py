"""The server: how each request is handled, and how serving starts and stops."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from socket import socket
from ssl import SSLContext
from time import perf_counter
from typing import Protocol

from aiohttp import web

from adapter.auth.attributes import Attributes, ResourceAttributes
from adapter.auth.authentication import ANONYMOUS, Caller
from adapter.auth.authorizer import MASTERS
from adapter.auth.front_proxy import FRONT_PROXY
from adapter.auth.source_address import source_of
from adapter.config.model import Limits
from adapter.errors import DeadlineExceeded, TooManyConcurrentRequests
from adapter.fair_limit import FairLimit
from adapter.server import status
from adapter.server.accounting import RequestAccounting
from adapter.server.connection import Connection
from adapter.server.debug_endpoints import DebugEndpoints
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.health import UNAUTHENTICATED_PATHS, Check, Health
from adapter.server.listener import Listener
from adapter.server.request_context import RequestContext
from adapter.server.routes import Routes


class Authenticator(Protocol):
    """Determines the caller of a request."""

    async def authenticate(self, request: web.BaseRequest) -> Caller:
        """Return the caller, anonymous without credentials; raise ``Unauthenticated`` if they are invalid."""


class Authorizer(Protocol):
    """Decides whether a caller may make a request."""

    async def authorize(self, caller: Caller, attributes: Attributes, source: str) -> None:
        """Return if the caller is authorized; raise ``AccessDenied`` if not, ``ReviewUnavailable`` if reviews fail.

        A rejection is never a return value, so that an ignored result cannot grant access.
        """


class Server:
    """Serves the external metrics API."""

    def __init__(
        self,
        *,
        metrics: ExternalMetrics,
        authenticator: Authenticator,
        authorizer: Authorizer,
        limits: Limits,
        accounting: RequestAccounting,
        ready: dict[str, Check] | None = None,
        debug: DebugEndpoints | None = None,
    ) -> None:
        self.stopping = False
        """Whether the server is shutting down; ``/readyz`` then fails, so that clients use other replicas."""

        self.listeners: list[Listener] = []
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._limits = limits
        self._accounting = accounting
        self._in_flight = FairLimit(limits.max_concurrent_requests, TooManyConcurrentRequests)
        accounting.telemetry.in_flight.set_function(lambda: self._in_flight.in_use)
        health = Health({**(ready or {}), "shutdown": lambda: not self.stopping})
        self._debug = debug
        self._routes = Routes(metrics, health, accounting.telemetry.render, debug)

    # --- requests ----------------------------------------------------------------------------------------------------

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one request; every error becomes a Status."""
        started = perf_counter()  # uvloop's loop.time() has a resolution of milliseconds
        context = RequestContext.create(request)
        response: web.StreamResponse
        error: Exception | None = None
        try:
            response = await self._with_deadline(context)
        except Exception as raised:  # noqa: BLE001  (unexpected errors are logged by status.response)
            error = raised
            response = status.response(raised, pretty=context.is_pretty())
        self._add_headers(context, response)
        self._accounting.record(context, response.status, perf_counter() - started, error)
        return response

    async def _with_deadline(self, context: RequestContext) -> web.StreamResponse:
        seconds = context.timeout(self._limits.request_timeout).total_seconds()
        timeout = asyncio.timeout(seconds)
        try:
            async with timeout:
                if context.path in UNAUTHENTICATED_PATHS:
                    return await self._routed(context)
                context.caller = await self._authenticator.authenticate(context.request)
                self._note_authentication(context)
                if self._is_limited(context):
                    return await self._limited(context, context.caller)
                await self._authorize(context, context.caller)
                return await self._routed(context)
        except TimeoutError:
            if timeout.expired():
                raise DeadlineExceeded(f"the request did not complete within {seconds:g}s") from None
            raise

    def _note_authentication(self, context: RequestContext) -> None:
        connection = context.request.protocol
        if context.caller is not ANONYMOUS and isinstance(connection, Connection):
            connection.listener.authenticated(connection, is_front_proxy=FRONT_PROXY in context.request)

    def _is_limited(self, context: RequestContext) -> bool:
        """Return whether the request counts against the concurrency limit, including its access review."""
        if context.caller is not None and MASTERS in context.caller.groups:
            return False
        route = self._routes.lookup(context)
        return route is None or route.limited

    async def _limited(self, context: RequestContext, caller: Caller) -> web.StreamResponse:
        """Authorize and route within the concurrency limit; queueing would delay all requests.

        A read counts for its namespace: a tenant can use many callers, and the HPA controller is the caller for many
        tenants. Before it is authorized it counts for its caller, which could otherwise use up any namespace's share.
        """
        holder, attributes = ("caller", caller.name), context.attributes
        with self._in_flight.hold(holder):
            await self._authorize(context, caller)
        if isinstance(attributes, ResourceAttributes) and attributes.namespace:
            holder = ("namespace", attributes.namespace)
        with self._in_flight.hold(holder):
            return await self._routed(context)

    async def _authorize(self, context: RequestContext, caller: Caller) -> None:
        """Authorize before routing, so that unauthorized callers cannot find out which paths exist."""
        await self._authorizer.authorize(caller, context.attributes, source_of(context.request.remote))

    async def _routed(self, context: RequestContext) -> web.StreamResponse:
        route = self._routes.find(context)
        context.endpoint = route.endpoint
        return await route.handler(context)

    def _add_headers(self, context: RequestContext, response: web.StreamResponse) -> None:
        response.headers["Audit-Id"] = context.audit_id
        for name, value in status.COMMON_HEADERS.items():
            response.headers.setdefault(name, value)
        if self.stopping:
            response.force_close()  # makes the API server connect to another replica

    # --- lifecycle ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def serving(self, listening: socket, tls: SSLContext | None) -> AsyncIterator[int]:
        """Accept connections for the length of the block and yield the port; on exit drain requests in flight."""
        listener = Listener(self.handle, self._limits, self._accounting)
        self.listeners.append(listener)
        checking = asyncio.create_task(listener.check(), name="connection timeouts")
        listener.start(listening, tls)
        try:
            yield listening.getsockname()[1]
        finally:
            checking.cancel()
            listener.stop(listening)
            self.listeners.remove(listener)
            await asyncio.sleep(0)  # start the handlers of requests that have already arrived
            listener.pre_shutdown()
            await listener.shutdown(self._limits.drain_timeout.total_seconds())

    async def begin_shutdown(self) -> None:
        """Report not ready, and keep serving for ``shutdownDelay`` until clients use other replicas."""
        self.stopping = True
        if self._debug is not None:
            self._debug.begin_shutdown()
        await asyncio.sleep(self._limits.shutdown_delay.total_seconds())

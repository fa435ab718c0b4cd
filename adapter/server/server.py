"""The server: how each request is handled, and how serving starts and stops."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ssl import SSLContext
from time import perf_counter

from aiohttp import web

from adapter.auth.authorizer import MASTERS
from adapter.auth.protocols import Authenticator, Authorizer
from adapter.config.model import Limits
from adapter.errors import DeadlineExceeded
from adapter.server import status
from adapter.server.accounting import RequestAccounting
from adapter.server.connection import Listener
from adapter.server.debug_endpoints import DebugEndpoints
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.health import UNAUTHENTICATED_PATHS, Check, Health, Lifecycle
from adapter.server.limits import ConcurrencyLimit, request_timeout
from adapter.server.request_context import RequestContext
from adapter.server.routes import Routes


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
        self.lifecycle = Lifecycle()
        self.listeners: list[Listener] = []
        """The open listeners."""

        self._authenticator = authenticator
        self._authorizer = authorizer
        self._limits = limits
        self._accounting = accounting
        self._concurrency_limit = ConcurrencyLimit(limits.max_concurrent_requests, accounting.telemetry.in_flight)
        health = Health(live={}, ready={**(ready or {}), "shutdown": self.lifecycle.is_serving})
        self._page = None if debug is None else debug.page
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
        seconds = request_timeout(context, self._limits.request_timeout)
        timeout = asyncio.timeout(seconds)
        try:
            async with timeout:
                return await self._authenticated(context)
        except TimeoutError:
            if timeout.expired():
                raise DeadlineExceeded(f"the request did not complete within {seconds:g}s") from None
            raise

    async def _authenticated(self, context: RequestContext) -> web.StreamResponse:
        """Authenticate and authorize before routing, so that unauthorized callers cannot find out which paths exist."""
        if context.path not in UNAUTHENTICATED_PATHS:
            context.caller = await self._authenticator.authenticate(context.request)
            await self._authorizer.authorize(context.caller, context.attributes)
        route = self._routes.find(context)
        context.endpoint = route.endpoint
        if not route.limited or (context.caller and MASTERS in context.caller.groups):
            return await route.handler(context)
        with self._concurrency_limit:
            return await route.handler(context)

    def _add_headers(self, context: RequestContext, response: web.StreamResponse) -> None:
        response.headers["Audit-Id"] = context.audit_id
        for name, value in status.COMMON_HEADERS.items():
            response.headers.setdefault(name, value)
        if self.lifecycle.stopping:
            response.force_close()  # makes the API server connect to another replica

    # --- lifecycle ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def serving(self, address: str, port: int, tls: SSLContext | None) -> AsyncIterator[int]:
        """Listen for the length of the block and yield the port; on exit drain requests in flight."""
        listener = Listener(self.handle, self._limits, self._accounting)
        handshake_timeout = None if tls is None else self._limits.header_timeout.total_seconds()
        server = await asyncio.get_running_loop().create_server(
            listener, address, port, ssl=tls, ssl_handshake_timeout=handshake_timeout, backlog=1024
        )
        self.listeners.append(listener)
        checking = asyncio.create_task(listener.run(), name="connection timeouts")
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            checking.cancel()
            self.listeners.remove(listener)
            server.close()
            await asyncio.sleep(0)  # start the handlers of requests that have already arrived
            listener.pre_shutdown()
            await listener.shutdown(self._limits.drain_timeout.total_seconds())

    async def begin_shutdown(self) -> None:
        """Report not ready, and keep serving for ``shutdownDelay`` until clients use other replicas."""
        self.lifecycle.stopping = True
        if self._page is not None:
            self._page.begin_shutdown()
        await asyncio.sleep(self._limits.shutdown_delay.total_seconds())

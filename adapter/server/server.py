"""The server: the walk of every request, and the order of starting and stopping."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ssl import SSLContext

from aiohttp import web

from adapter.auth.protocols import Authenticator, Authorizer
from adapter.config.model import Limits
from adapter.server import status
from adapter.server.access_log import Answered
from adapter.server.accounting import Journal
from adapter.server.connection import Listener
from adapter.server.debug_endpoints import Debug
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.health import OPEN, Check, Health, Lifecycle
from adapter.server.limits import ConcurrencyLimit, Deadlines, time_for
from adapter.server.request_context import RequestContext, RequestContexts
from adapter.server.routes import Routes
from adapter.server.values import COMMON, Values

_MASTERS = "system:masters"


class Server:
    """Serves the metrics API."""

    def __init__(
        self,
        *,
        metrics: ExternalMetrics,
        authenticator: Authenticator,
        authorizer: Authorizer,
        limits: Limits,
        journal: Journal,
        ready: dict[str, Check] | None = None,
        debug: Debug | None = None,
    ) -> None:
        self.lifecycle = Lifecycle()
        self.listeners: list[Listener] = []
        """Where we listen now; none before and after serving."""

        self._authenticator = authenticator
        self._authorizer = authorizer
        self._limits = limits
        self._journal = journal
        self._deadlines, self._exchanges = Deadlines(), RequestContexts()
        self._turnstile = ConcurrencyLimit(limits.max_concurrent_requests, journal.telemetry.in_flight)
        health = Health(live={}, ready={**(ready or {}), "shutdown": self.lifecycle.is_staying})
        self._page = None if debug is None else debug.page
        self._routes = Routes(metrics, health, journal.figures, debug)

    # --- the walk ----------------------------------------------------------------------------------------------------

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request. Whatever goes wrong below becomes a Status here, so this never raises."""
        # Not the one that is running, though it is the same: to find that out is to ask the system.
        loop = request.task.get_loop()
        started = loop.time()
        exchange = self._exchanges.begin(request)
        response: web.StreamResponse
        error: Exception | None = None
        try:
            response = await self._admit(exchange, loop)
        except Exception as raised:  # noqa: BLE001  (a Status for everything; the unforeseen is logged there)
            error = raised
            response = status.answer(raised, pretty=exchange.pretty())
        self._finish(exchange, response)
        self._journal.add(Answered(exchange, response.status, loop.time() - started, error), loop)
        return response

    async def _admit(self, exchange: RequestContext, loop: asyncio.AbstractEventLoop) -> web.StreamResponse:
        """Who is it, may they, is it there, is there room; in this order, so that a stranger learns nothing."""
        with self._deadlines.within(time_for(exchange, self._limits.request_timeout), loop):
            if exchange.path not in OPEN:
                exchange.caller = await self._authenticator.authenticate(exchange.request)
                await self._authorizer.authorize(exchange.caller, exchange.attributes)
            route = self._routes.find(exchange)
            exchange.endpoint = route.endpoint
            if not route.limited or (exchange.caller and _MASTERS in exchange.caller.groups):
                return await route.handler(exchange)
            with self._turnstile:
                return await route.handler(exchange)

    def _finish(self, exchange: RequestContext, response: web.StreamResponse) -> None:
        """Add what every answer carries."""
        if isinstance(response, Values):
            response.audit_id = exchange.audit_id
        else:
            response.headers["Audit-Id"] = exchange.audit_id
            for name, value in COMMON.items():
                response.headers.setdefault(name, value)
        if self.lifecycle.stopping:
            response.force_close()  # so that the API server's pool goes to another replica

    # --- its life ----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def serving(self, address: str, port: int, tls: SSLContext | None) -> AsyncIterator[int]:
        """Listen while the block runs, and yield the port; on leaving, stop as gracefully as the limits allow."""
        listener = Listener(self.answer, self._limits, self._journal.telemetry)
        handshake = None if tls is None else self._limits.header_timeout.total_seconds()
        listening = await asyncio.get_running_loop().create_server(
            listener, address, port, ssl=tls, ssl_handshake_timeout=handshake, backlog=1024
        )
        self.listeners.append(listener)
        carer = asyncio.create_task(listener.look_after(), name="connections")
        try:
            yield listening.sockets[0].getsockname()[1]
        finally:
            carer.cancel()
            self.listeners.remove(listener)
            listening.close()
            await asyncio.sleep(0)  # let requests that have arrived already begin
            listener.pre_shutdown()
            await listener.shutdown(self._limits.drain.total_seconds())
            self._journal.write()

    async def leave(self) -> None:
        """Say that we are going, and go on answering until nobody comes any more."""
        self.lifecycle.stopping = True
        if self._page is not None:
            self._page.leave()
        await asyncio.sleep(self._limits.shutdown_delay.total_seconds())

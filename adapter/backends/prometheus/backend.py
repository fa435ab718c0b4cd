"""The Prometheus backend: queries with the timestamps of their samples, sent by threads within a deadline."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Final, TypeAlias, TypeVar

from cachetools import TTLCache

from adapter.backends.connection.http_credentials import HttpCredentials
from adapter.backends.prometheus.client import Client
from adapter.backends.prometheus.connection import AbortableRequest
from adapter.backends.prometheus.parse import names, partial_result_error, samples
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.errors import BadQuery
from adapter.rules.promql.sample_age import with_timestamps
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

T = TypeVar("T")
Result: TypeAlias = tuple[tuple[RawSample, ...], tuple[str, ...]]
"""The samples of a query, and the warnings that the result may be partial."""

_log = logging.getLogger(__name__)
_PING_DEADLINE: Final = timedelta(seconds=5)
_MAX_QUERIES: Final = 4096
_VARIANT_TTL: Final = 300
"""Seconds; that two series had the same labels may have been temporary."""


class PrometheusBackend:
    """A client of one Prometheus server."""

    def __init__(self, name: str, settings: Prometheus, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        credentials = HttpCredentials(settings)
        self._client = Client(settings, credentials)
        self._protected = ProtectedCall(settings.circuit_breaker, clock, credentials.secrets)
        self._threads = ThreadPoolExecutor(settings.max_connections, f"prometheus-{name}")
        self._variants: TTLCache[str, tuple[str, ...]] = TTLCache(_MAX_QUERIES, _VARIANT_TTL)
        """By query, the variant that yields timestamps too, as far as it is known; empty if there is none."""
        self._last_warnings: tuple[str, ...] = ()

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return all series of the query, each with the timestamp of its sample."""
        ends = asyncio.get_running_loop().time() + deadline.total_seconds()
        result, warnings = await self._protected.run(query.text, deadline, lambda: self._fetch(query.text, ends))
        if warnings != self._last_warnings:
            self._last_warnings = warnings
            _log.warning("responses have warnings", extra={"backend": self.name, "warnings": warnings[:5]})
        if warnings and self._settings.warnings == "refuse":
            raise partial_result_error(warnings)
        return result

    async def names(self, selector: str, age: timedelta, deadline: timedelta) -> frozenset[str]:
        """Return the names of the series that match and have samples not older than ``age``."""
        now = self._clock()
        ends = asyncio.get_running_loop().time() + deadline.total_seconds()

        def send(request: AbortableRequest) -> frozenset[str]:
            return names(self._client.series(request, selector, now - age, now))

        return await self._protected.run(selector, deadline, lambda: self._in_thread(send, ends))

    async def ping(self) -> None:
        """Evaluate an expression that needs no data."""
        ends = asyncio.get_running_loop().time() + _PING_DEADLINE.total_seconds()
        await self._protected.run("ping", _PING_DEADLINE, lambda: self._query("vector(1)", ends))

    async def aclose(self) -> None:
        """End running requests, then stop the threads and close connections."""
        await self._protected.aclose()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        self._client.close()

    async def _fetch(self, text: str, ends: float) -> Result:
        """Query values and timestamps together, or the values alone where the two cannot be combined."""
        variants = self._variants.get(text)
        if variants is None:
            variants = self._possible_variants(text)
        for variant in variants:
            try:
                result = await self._query(variant, ends)
            except BadQuery:
                continue  # either the query itself is invalid or the extension of it; the next request shows which
            self._variants[text] = (variant,)
            return result
        result = await self._query(text, ends)
        if variants:
            self._variants[text] = ()
            _log.warning("timestamps of a query are not available", extra={"backend": self.name, "query": text})
        return result

    def _possible_variants(self, text: str) -> tuple[str, ...]:
        """Return the variants that yield timestamps too; one of them converts a scalar into a vector."""
        if not self._settings.sample_times:
            return ()
        variants = (with_timestamps(text), with_timestamps(f"vector(\n{text}\n)"))
        return tuple(variant for variant in variants if variant is not None)

    async def _query(self, text: str, ends: float) -> Result:
        now = self._clock()

        def send(request: AbortableRequest) -> Result:
            # Parsed in the thread, too: ten thousand series would block the event loop.
            response = self._client.query(request, text)
            return samples(response, now), response.partial_warnings

        return await self._in_thread(send, ends)

    async def _in_thread(self, send: Callable[[AbortableRequest], T], ends: float) -> T:
        """Run a request in a thread; when the caller is cancelled, abort the request without waiting for the thread."""
        request = AbortableRequest(ends)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, send, request)
        finally:
            request.abort()

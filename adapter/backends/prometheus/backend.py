"""The Prometheus backend: queries with the timestamps of their samples."""

import asyncio
import logging
import math
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from cachetools import TTLCache
from prometheus_api_client import PrometheusConnect

from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.shared_limits import parse_in_thread
from adapter.backends.prometheus.api_request import ApiRequest, RecordingSession
from adapter.backends.prometheus.parse import ApiResponse, decode, names, partial_result_error, samples
from adapter.backends.prometheus.settings import Prometheus
from adapter.errors import BadQuery
from adapter.label_sets import LabelSets
from adapter.rules.promql.sample_age import with_timestamps
from adapter.rules.query_builder import Query
from adapter.series_table import SeriesTable

T = TypeVar("T")
Result: TypeAlias = tuple[SeriesTable, tuple[str, ...]]
"""The samples of a query, and the warnings that the result may be partial."""

_log = logging.getLogger(__name__)
_PING_DEADLINE: Final = timedelta(seconds=5)
_ALL_STATUSES: Final = range(600)
"""``decode`` translates error responses, because Prometheus explains errors in the body."""

_MAX_LOGGED_CHARACTERS: Final = 1024
_LOG_INTERVAL: Final = 60
"""Seconds between two log lines with the same message for the same namespace: a tenant can cause any number."""

_MAX_LOGGED_NAMESPACES: Final = 1024
_MAX_CACHED_CHARACTERS: Final = 8 * 1024 * 1024
_CHARACTERS_WITHOUT_VARIANT: Final = 16 * 1024
_VARIANT_TTL: Final = 300
"""Seconds. A variant fails while two series have the same labels, which may be temporary."""


class PrometheusBackend:
    """A client of one Prometheus server."""

    def __init__(self, name: str, settings: Prometheus, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._client = HttpClient(settings, clock)
        self._requests: Any = PrometheusConnect(url="", session=RecordingSession(), method=settings.method)
        self._variants: TTLCache[str, tuple[str, ...]] = TTLCache(
            _MAX_CACHED_CHARACTERS, _VARIANT_TTL, getsizeof=_cached_characters
        )
        """By query, the variant of it that also yields timestamps; empty if no variant works; absent if unknown."""
        self._label_sets: WeakValueDictionary[Hashable, LabelSets] = WeakValueDictionary()
        """The label sets of the last result of each query, while its snapshot is in memory."""

        self._logged: TTLCache[tuple[str, str], bool] = TTLCache(_MAX_LOGGED_NAMESPACES, _LOG_INTERVAL)

    async def fetch(self, query: Query, deadline: timedelta) -> SeriesTable:
        """Return all series of the query, each with the timestamp of its sample."""
        ends = asyncio.get_running_loop().time() + deadline.total_seconds()
        result, warnings = await self._client.run(
            query.text, deadline, lambda: self._fetch(query, ends), namespace=query.namespace
        )
        if warnings:
            self._log(
                "responses have warnings", query, warnings=[text[:_MAX_LOGGED_CHARACTERS] for text in warnings[:5]]
            )
        if warnings and self._settings.warnings == "refuse":
            raise partial_result_error(warnings)
        self._label_sets[query.key] = result.label_sets
        return result

    async def names(self, selector: str, age: timedelta, deadline: timedelta) -> frozenset[str]:
        """Return the names of the series that match and have samples not older than ``age``."""
        now = self._clock()
        parameters = {**self._settings.parameters, "match[]": selector}
        request = self._requests.get_series(now - age, now, params=parameters)
        return await self._client.run(selector, deadline, lambda: self._send(request, names))

    async def ping(self) -> None:
        """Evaluate an expression that needs no data."""
        ends = asyncio.get_running_loop().time() + _PING_DEADLINE.total_seconds()
        await self._client.run("ping", _PING_DEADLINE, lambda: self._query("vector(1)", ends, None))

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _fetch(self, query: Query, ends: float) -> Result:
        """Query values and timestamps together, or the values alone where the two cannot be combined."""
        text, known = query.text, self._label_sets.get(query.key)
        variants = self._variants.get(text)
        if variants is None:
            variants = self._possible_variants(text)
        for variant in variants:
            try:
                result = await self._query(variant, ends, known)
            except BadQuery:
                continue  # either the query itself is invalid or the extension of it; the next request shows which
            self._variants[text] = (variant,)
            return result
        result = await self._query(text, ends, known)
        if variants:
            self._variants[text] = ()
            self._log("timestamps of a query are not available", query)
        return result

    def _log(self, message: str, query: Query, **fields: object) -> None:
        if (message, query.namespace) not in self._logged:
            self._logged[message, query.namespace] = True
            text = query.text[:_MAX_LOGGED_CHARACTERS]
            fields = {"backend": self.name, "namespace": query.namespace, "query": text, **fields}
            _log.warning(message, extra=fields)

    def _possible_variants(self, text: str) -> tuple[str, ...]:
        """Return the variants that yield timestamps too; one of them converts a scalar into a vector."""
        if not self._settings.sample_times:
            return ()
        variants = (with_timestamps(text), with_timestamps(f"vector(\n{text}\n)"))
        return tuple(variant for variant in variants if variant is not None)

    async def _query(self, text: str, ends: float, known: LabelSets | None) -> Result:
        now = self._clock()
        milliseconds = math.ceil((ends - asyncio.get_running_loop().time()) * 1000)
        # The server stops the evaluation when the response is no longer awaited.
        parameters = {**self._settings.parameters, "timeout": f"{max(milliseconds, 1)}ms"}
        request = self._requests.custom_query(text, params=parameters)
        return await self._send(request, lambda response: (samples(response, now, known), response.partial_warnings))

    async def _send(self, request: ApiRequest, parse: Callable[[ApiResponse], T]) -> T:
        response = await self._client.request(request.method, request.target, accept=_ALL_STATUSES, data=request.form)
        return await parse_in_thread(lambda: parse(decode(response.status, response.body)))


def _cached_characters(variants: tuple[str, ...]) -> int:
    """Return the approximate size of a cache entry. Queries have up to 64 KiB; a variant is longer than its query."""
    return 2 * len(variants[0]) if variants else _CHARACTERS_WITHOUT_VARIANT

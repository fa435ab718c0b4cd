"""The Prometheus backend: a deadline on every question, a breaker in front of a server that does not answer."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TypeAlias, TypeVar

from cachetools import TTLCache

from adapter.backends.prometheus.client import Client
from adapter.backends.prometheus.connection import Call
from adapter.backends.prometheus.parse import names, samples, warned
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.resilience.circuit_breaker import CircuitBreaker
from adapter.errors import BackendError, BackendTimeout, BackendUnreachable, BadQuery
from adapter.rules.promql.sample_age import timed
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

T = TypeVar("T")
Answered: TypeAlias = tuple[tuple[RawSample, ...], tuple[str, ...]]
"""The series of an answer, and the warnings that came with it."""

_log = logging.getLogger(__name__)
_PING = timedelta(seconds=5)
_REMEMBERED = 4096
_HEAD_START = 0.98
"""We give up a little before whoever waits for us does, and so know that it was for want of an answer."""
_TIMED_FOR = 300  # seconds; that two series clashed may have been a passing thing


class PrometheusBackend:
    """A client of one Prometheus."""

    def __init__(self, name: str, settings: Prometheus, clock: Callable[[], datetime]) -> None:
        self._name = name
        self._settings = settings
        self._clock = clock
        self._client = Client(settings)
        self._threads = ThreadPoolExecutor(settings.connections, f"prometheus-{name}")
        self._calls: set[Call] = set()
        limits = settings.breaker
        self._breaker = CircuitBreaker(limits.failures, limits.rest, limits.longest)
        self._failure: BackendError = BackendUnreachable("not asked yet")
        self._timed: TTLCache[str, tuple[str, ...]] = TTLCache(_REMEMBERED, _TIMED_FOR)
        """In which forms to ask for a query's numbers and times together: the one that worked, or none that did."""
        self._warned: tuple[str, ...] = ()
        self._is_closed = False

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return all series that the query finds, each with the time of its sample."""
        with _within(deadline):
            found, doubts = await self._answer(query.text, self._clock(), _after(deadline))
        if doubts != self._warned:
            self._warned = doubts
            _log.warning("answers come with warnings", extra={"backend": self.name, "warnings": doubts[:5]})
        if doubts and self._settings.warnings == "refuse":
            raise warned(doubts)
        return found

    async def names(self, selector: str, age: timedelta, deadline: timedelta) -> frozenset[str]:
        """Return the names of the series that match and were heard of within ``age``."""
        now = self._clock()

        def ask(call: Call) -> frozenset[str]:
            return names(self._client.series(call, selector, now - age, now))

        with _within(deadline):
            return await self._ask(selector, ask, _after(deadline))

    async def ping(self) -> None:
        """Ask for a number that needs no data."""
        with _within(_PING):
            await self._query("vector(1)", self._clock(), _after(_PING))

    async def aclose(self) -> None:
        """End what is under way, and let go of connections and threads."""
        self._is_closed = True
        for call in tuple(self._calls):
            call.end()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        self._client.close()

    async def _answer(self, text: str, now: datetime, ends: float) -> Answered:
        """Ask for numbers and times in one query; for the numbers alone where the two cannot be asked together."""
        forms = self._timed.get(text) if text in self._timed else self._forms(text)
        for form in forms or ():
            try:
                answered = await self._query(form, now, ends)
            except BadQuery:
                continue  # the query's own fault, or that of what we added: the next answer will tell
            self._timed[text] = (form,)
            return answered
        answered = await self._query(text, now, ends)
        if forms:
            self._timed[text] = ()
            _log.warning("how old a query's numbers are cannot be asked", extra={"backend": self.name, "query": text})
        return answered

    def _forms(self, text: str) -> tuple[str, ...]:
        """Give the ways to ask for times as well; a scalar has none of its own, so it is made a vector."""
        if not self._settings.sample_times:
            return ()
        return tuple(form for form in (timed(text), timed(f"vector(\n{text}\n)")) if form is not None)

    async def _query(self, text: str, now: datetime, ends: float) -> Answered:
        def ask(call: Call) -> Answered:
            # Read in the thread, too: ten thousand series are too much work to hold up everyone else for.
            answer = self._client.query(call, text)
            return samples(answer, now), answer.doubts

        return await self._ask(text, ask, ends)

    async def _ask(self, about: str, ask: Callable[[Call], T], ends: float) -> T:
        if not self._breaker.admits(self._clock()):
            raise type(self._failure)(self._failure.message, detail=f"not asked again yet: {self._failure.detail}")
        try:
            answer = await self._in_thread(ask, ends)
        except asyncio.CancelledError:
            self._breaker.abandoned()
            raise
        except BackendError as error:
            if error.affects_all_queries:
                self._failure = error
                self._breaker.failed(self._clock(), about)
            else:
                self._breaker.succeeded()  # it answers; that we do not like the answer is another matter
            raise
        self._breaker.succeeded()
        return answer

    async def _in_thread(self, ask: Callable[[Call], T], ends: float) -> T:
        """Wait for an answer as long as there is time, and not for the thread that fetches it."""
        if self._is_closed:
            raise BackendUnreachable("it is no longer configured")
        call = Call(ends)
        self._calls.add(call)
        try:
            async with asyncio.timeout_at(ends):
                return await asyncio.get_running_loop().run_in_executor(self._threads, ask, call)
        except TimeoutError:
            raise BackendTimeout from None
        finally:
            call.end()
            self._calls.discard(call)


@contextmanager
def _within(deadline: timedelta) -> Iterator[None]:
    """Say of whatever was too slow the same: who notices first, the server, the socket or we, is chance."""
    try:
        yield
    except BackendTimeout as error:
        raise BackendTimeout(f"no answer within {deadline.total_seconds():g}s", detail=error.detail) from None


def _after(time: timedelta) -> float:
    return asyncio.get_running_loop().time() + time.total_seconds() * _HEAD_START

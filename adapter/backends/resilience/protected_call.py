"""The door to one metric system: a deadline on every question, and a breaker in front of who does not answer."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from adapter.backends.connection.secret_file import Hidden, without_secrets
from adapter.backends.resilience.circuit_breaker import CircuitBreaker
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import BackendError, BackendTimeout, BackendUnreachable

T = TypeVar("T")

_HEAD_START: Final = 0.98
"""We give up a little before whoever waits for us does, and so know that it was for want of an answer."""


class Guard:
    """Lets questions through while there is time and reason to ask them."""

    def __init__(
        self, limits: CircuitBreakerSettings, clock: Callable[[], datetime], secrets: Sequence[Hidden] = ()
    ) -> None:
        self._clock = clock
        self._secrets = secrets
        """What is taken out of whatever a system says; looked at each time, so more may be added."""

        self._breaker = CircuitBreaker(limits.failures, limits.rest, limits.longest)
        self._failure: BackendError = BackendUnreachable("not asked yet")
        self._waits: set[asyncio.Timeout] = set()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._is_closed = False

    async def ask(self, about: str, deadline: timedelta, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask, and wait no longer than the deadline; ``about`` tells questions apart.

        What ``ask`` raises should be a ``BackendError``. Whoever is too slow, the system, its library or we: the words
        are the same, because who notices first is chance. No secret is in what is raised.
        """
        try:
            return await self._asked(about, deadline, ask)
        except BackendError as error:
            raise without_secrets(error, self._secrets) from None

    async def aclose(self) -> None:
        """End what is under way, and wait until it has ended; nothing is asked any more."""
        self._is_closed = True
        for wait in tuple(self._waits):
            if not wait.expired():
                wait.reschedule(asyncio.get_running_loop().time())
        await self._is_idle.wait()

    async def _asked(self, about: str, deadline: timedelta, ask: Callable[[], Awaitable[T]]) -> T:
        if not self._breaker.admits(self._clock()):
            raise self._as_before()
        try:
            answer = await self._in_time(deadline, ask)
        except BackendError as error:
            if error.affects_all_queries:
                self._failure = error
                self._breaker.failed(self._clock(), about)
            else:
                self._breaker.succeeded()  # it answers; that we do not like the answer is another matter
            raise
        except BaseException:
            self._breaker.abandoned()
            raise
        self._breaker.succeeded()
        return answer

    def _as_before(self) -> BackendError:
        told = type(self._failure)(self._failure.message, detail=f"not asked again yet: {self._failure.detail}")
        told.was_sent = False
        return told

    async def _in_time(self, deadline: timedelta, ask: Callable[[], Awaitable[T]]) -> T:
        if self._is_closed:
            raise BackendUnreachable("it is no longer configured")
        wait = asyncio.timeout(deadline.total_seconds() * _HEAD_START)
        detail = ""
        try:
            async with wait:
                self._waits.add(wait)
                self._is_idle.clear()
                return await ask()
        except TimeoutError:
            pass
        except BackendTimeout as error:
            detail = error.detail
        finally:
            self._waits.discard(wait)
            if not self._waits:
                self._is_idle.set()
        if self._is_closed:
            raise BackendUnreachable("it is no longer configured")
        raise BackendTimeout(f"no answer within {deadline.total_seconds():g}s", detail=detail)

"""The deadline, circuit breaker and redaction of secrets that every request to a backend goes through."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from adapter.backends.connection.secret_file import Redactor, redacted_error
from adapter.backends.resilience.circuit_breaker import CircuitBreaker
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import BackendError, BackendTimeout, BackendUnreachable

T = TypeVar("T")

_DEADLINE_MARGIN: Final = 0.98
"""The operation times out shortly before its caller does, so that the caller receives the reason."""

REMOVED: Final = "the backend was removed from the configuration"


class ProtectedCall:
    """Runs the operations of one backend."""

    def __init__(
        self, limits: CircuitBreakerSettings, clock: Callable[[], datetime], secrets: Sequence[Redactor] = ()
    ) -> None:
        self._clock = clock
        self._secrets = secrets
        """Removed from all error messages; read on each use, so the sequence may grow."""

        self._breaker = CircuitBreaker(limits.failure_threshold, limits.open_duration, limits.max_open_duration)
        self._last_failure: BackendError = BackendUnreachable("no request was sent yet")
        self._timeouts: set[asyncio.Timeout] = set()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._is_closed = False

    async def run(
        self,
        query_key: str,
        deadline: timedelta,
        operation: Callable[[], Awaitable[T]],
        *,
        is_quarantined: bool = False,
    ) -> T:
        """Return the operation's result; raise a ``BackendError`` without secrets if it fails or the deadline passes.

        ``query_key`` distinguishes queries for the circuit breaker. A timeout of a quarantined query is no failure of
        the backend: that query is known to be slow. The message of a timeout is the same whether the backend, its
        client library or this deadline ended the operation.
        """
        if not self._breaker.allows(self._clock()):
            raise redacted_error(self._open_circuit_error(), self._secrets)
        try:
            result = await self._run_within(deadline, operation)
        except BackendError as error:
            self._record_failure(error, query_key, is_quarantined=is_quarantined)
            raise redacted_error(error, self._secrets) from None
        except BaseException:
            self._breaker.abandoned()  # cancelled, or a programming error: the probe must not stay pending
            raise
        self._breaker.succeeded()
        return result

    async def aclose(self) -> None:
        """End running operations and wait for them; later calls of ``run`` fail."""
        self._is_closed = True
        for timeout in tuple(self._timeouts):
            if not timeout.expired():
                timeout.reschedule(asyncio.get_running_loop().time())
        await self._is_idle.wait()

    def _record_failure(self, error: BackendError, query_key: str, *, is_quarantined: bool) -> None:
        if not error.affects_all_queries:
            self._breaker.succeeded()  # the backend responded; only this query failed
        elif is_quarantined and isinstance(error, BackendTimeout):
            self._breaker.abandoned()
        else:
            self._last_failure = error
            self._breaker.failed(self._clock(), query_key)

    def _open_circuit_error(self) -> BackendError:
        last = self._last_failure
        error = type(last)(last.message, detail=f"circuit breaker open: {last.detail}")
        error.was_sent = False
        return error

    async def _run_within(self, deadline: timedelta, operation: Callable[[], Awaitable[T]]) -> T:
        if self._is_closed:
            raise BackendUnreachable(REMOVED)
        timeout = asyncio.timeout(deadline.total_seconds() * _DEADLINE_MARGIN)
        detail = ""
        try:
            async with timeout:
                self._timeouts.add(timeout)
                self._is_idle.clear()
                return await operation()
        except TimeoutError:
            pass
        except BackendTimeout as error:
            detail = error.detail
        finally:
            self._timeouts.discard(timeout)
            if not self._timeouts:
                self._is_idle.set()
        if self._is_closed:
            raise BackendUnreachable(REMOVED)
        raise BackendTimeout(f"no response within {deadline.total_seconds():g}s", detail=detail)

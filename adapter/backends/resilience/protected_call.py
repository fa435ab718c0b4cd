"""The deadline, circuit breaker and redaction of secrets that every request to a backend goes through."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from adapter.backends.connection import shared_limits
from adapter.backends.connection.secret_file import Redactor, redacted_error
from adapter.backends.resilience.circuits import Circuits
from adapter.backends.resilience.rate_limit import OPERATOR
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import BackendError, BackendRejected, BackendTimeout, BackendUnreachable, OverBudget

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

        self._circuits = Circuits(limits)
        self._min_timeout = limits.min_timeout
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
        namespace: str = OPERATOR,
        is_quarantined: bool = False,
    ) -> T:
        """Return the operation's result; raise a ``BackendError`` without secrets if it fails or the deadline passes.

        ``namespace`` and ``query_key`` distinguish queries for the circuit breaker. The timeout of a quarantined query,
        which is known to be slow, and a timeout after less than ``minTimeout`` are no failures of the backend. The
        message of a timeout is the same whether the backend, its client library or this deadline ended the operation.
        """
        if not self._circuits.allows(namespace, self._clock()):
            raise redacted_error(self._open_circuit_error(namespace), self._secrets)
        try:
            result = await self._run_within(deadline, operation, namespace)
        except BackendError as error:
            is_ignored = isinstance(error, OverBudget) or (
                isinstance(error, BackendTimeout) and (is_quarantined or deadline < self._min_timeout)
            )
            self._record_failure(None if is_ignored else error, query_key, namespace)
            raise redacted_error(error, self._secrets) from None
        except BaseException:
            self._circuits.abandoned(namespace)  # cancelled, or a programming error: the probe must not stay pending
            raise
        self._circuits.succeeded(namespace)
        return result

    async def aclose(self) -> None:
        """End running operations and wait for them; later calls of ``run`` fail."""
        self._is_closed = True
        for timeout in tuple(self._timeouts):
            if not timeout.expired():
                timeout.reschedule(asyncio.get_running_loop().time())
        await self._is_idle.wait()

    def _record_failure(self, error: BackendError | None, query_key: str, namespace: str) -> None:
        if error is None:
            self._circuits.abandoned(namespace)
        elif error.affects_all_queries:
            self._circuits.failed(namespace, self._clock(), query_key, error)
        else:
            self._circuits.rejected(namespace, self._clock())  # the backend responded; only this query failed

    def _open_circuit_error(self, namespace: str) -> BackendError:
        last = self._circuits.last_failure(namespace, self._clock())
        error = type(last)(last.message, detail=f"circuit breaker open: {last.detail}")
        error.was_sent = False
        return error

    async def _run_within(self, deadline: timedelta, operation: Callable[[], Awaitable[T]], namespace: str) -> T:
        if self._is_closed:
            raise BackendUnreachable(REMOVED)
        timeout = asyncio.timeout(deadline.total_seconds() * _DEADLINE_MARGIN)
        detail, current = "", None
        try:
            async with timeout:
                self._timeouts.add(timeout)
                self._is_idle.clear()
                async with shared_limits.operation(namespace) as current:
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
        if current is not None and current.waits_for:
            raise BackendRejected(f"waited until the deadline for {current.waits_for}")
        raise BackendTimeout(f"no response within {deadline.total_seconds():g}s", detail=detail)

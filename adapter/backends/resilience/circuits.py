"""The circuit breakers of one backend: one for the operator and one for each namespace.

Failures of a namespace open only its own circuit, so that a tenant cannot stop the queries of others with slow or
failing queries of its own. The operator's circuit applies to all namespaces: while it is open, no request is sent.
When it is half-open, each namespace may send a probe. Any success closes the operator's circuit, and so does a response
that rejects the query of a probe; the failed probe of a namespace opens only the circuit of this namespace.
"""

from datetime import datetime
from typing import Final

from cachetools import LRUCache

from adapter.backends.resilience.circuit_breaker import CircuitBreaker, CircuitState
from adapter.backends.resilience.rate_limit import OPERATOR
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import BackendError, BackendUnreachable

_MAX_NAMESPACES: Final = 1024
_NO_REQUEST: Final = "no request was sent yet"


class Circuits:
    """Call ``allows`` before a request, then exactly one of ``succeeded``, ``failed`` and ``abandoned`` after it."""

    def __init__(self, settings: CircuitBreakerSettings) -> None:
        self._settings = settings
        self._operator = self._create()
        self._namespaces: LRUCache[str, CircuitBreaker] = LRUCache(_MAX_NAMESPACES)
        self._last_failures: LRUCache[str, BackendError] = LRUCache(_MAX_NAMESPACES)

    def allows(self, namespace: str, now: datetime) -> bool:
        if namespace == OPERATOR:
            return self._operator.allows(now)
        state = self._operator.state(now)
        if state is CircuitState.OPEN:
            return False
        return self._circuit(namespace).allows(now, is_probe=state is CircuitState.HALF_OPEN)

    def succeeded(self, namespace: str) -> None:
        """Record the result of a query of the namespace."""
        self._operator.succeeded()
        if namespace in self._namespaces:
            self._circuit(namespace).succeeded()

    def rejected(self, namespace: str, now: datetime) -> None:
        """Record a response that rejects a query of the namespace.

        Anything between the adapter and the backend can reject an invalid query, so a tenant must not be able to close
        the operator's circuit with such queries, or to reset its failures.
        """
        if namespace == OPERATOR or self._operator.state(now) is CircuitState.HALF_OPEN:
            self._operator.succeeded()
        if namespace in self._namespaces:
            self._circuit(namespace).succeeded()

    def failed(self, namespace: str, now: datetime, query_key: str, error: BackendError) -> None:
        """Record a failure that may affect all queries of the backend."""
        self._last_failures[namespace] = error
        self._circuit(namespace).failed(now, query_key)

    def abandoned(self, namespace: str) -> None:
        """Record a request that ended without information about the backend."""
        self._circuit(namespace).abandoned()

    def last_failure(self, namespace: str, now: datetime) -> BackendError:
        """Return the failure that opened the circuit; never that of another namespace, which may contain its data."""
        shared = namespace == OPERATOR or self._operator.state(now) is not CircuitState.CLOSED
        return self._last_failures.get(OPERATOR if shared else namespace) or BackendUnreachable(_NO_REQUEST)

    def _circuit(self, namespace: str) -> CircuitBreaker:
        if namespace == OPERATOR:
            return self._operator
        circuit = self._namespaces.get(namespace)
        if circuit is None:
            circuit = self._namespaces[namespace] = self._create()
        return circuit

    def _create(self) -> CircuitBreaker:
        settings = self._settings
        return CircuitBreaker(settings.failure_threshold, settings.open_duration, settings.max_open_duration)

"""The upstream backend: sends the requests of an HPA to another external metrics server."""

from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from adapter.backends.connection import http_errors
from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.shared_limits import parse_in_thread
from adapter.backends.parameters import parameters
from adapter.backends.upstream.parse import samples, status_message
from adapter.backends.upstream.settings import Upstream, UpstreamParameters
from adapter.errors import BackendError, BackendMetricUnknown, BackendRejected
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_ROOT: Final = "/apis/external.metrics.k8s.io/v1beta1"
_PING_DEADLINE: Final = timedelta(seconds=5)
_JSON: Final = {"Accept": "application/json"}
_MAY_CONCERN_ONE_METRIC: Final = frozenset(
    {HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
)
"""Statuses that an external metrics server returns for one metric, and a proxy for the whole server."""


class UpstreamBackend:
    """A client of one external metrics server."""

    def __init__(self, name: str, settings: Upstream, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._clock = clock
        self._client = HttpClient(settings, clock)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return the series of the metric, perhaps none; raise ``BackendMetricUnknown`` if it does not exist."""
        target, now = _target(parameters(query, UpstreamParameters)), self._clock()

        async def operation() -> tuple[RawSample, ...]:
            response = await self._client.request("GET", target, accept=_MAY_CONCERN_ONE_METRIC, headers=_JSON)
            if response.status != HTTPStatus.OK:
                raise _from_status(response.status, response.body)
            return await parse_in_thread(samples, response.body, now)

        return await self._client.run(query.text, deadline, operation, namespace=query.namespace)

    async def ping(self) -> None:
        """Request the discovery document."""
        await self._client.get(_ROOT, _PING_DEADLINE, headers=_JSON)

    async def aclose(self) -> None:
        await self._client.aclose()


def _target(wanted: UpstreamParameters) -> str:
    path = f"{_ROOT}/namespaces/{quote(wanted.namespace, safe='')}/{quote(wanted.metric, safe='')}"
    return f"{path}?labelSelector={quote(wanted.selector, safe='')}" if wanted.selector else path


def _from_status(status: int, body: bytes) -> BackendError:
    """Return the error of the metric if the body is a Kubernetes ``Status``, else of the whole server."""
    message = status_message(body)
    if status == HTTPStatus.NOT_FOUND:
        return BackendMetricUnknown(detail=message)
    if message:
        return BackendRejected(f"HTTP {status} {HTTPStatus(status).phrase}", detail=message)
    return http_errors.from_status(status, body)

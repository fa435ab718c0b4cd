"""The backend that asks as an HPA asks."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import msgspec

from adapter.backends.connection import http_errors
from adapter.backends.connection.http import HttpClient
from adapter.backends.parameters import parameters
from adapter.backends.upstream.parse import samples
from adapter.backends.upstream.settings import Upstream, UpstreamParameters
from adapter.errors import BackendError, BackendMetricUnknown, BackendRejected
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_ROOT: Final = "/apis/external.metrics.k8s.io/v1beta1"
_PING: Final = timedelta(seconds=5)
_JSON: Final = {"Accept": "application/json"}
_EXPLAINED: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})
"""What such a server says of one metric, and what anyone says of himself."""


class UpstreamBackend:
    """A client of one such server."""

    def __init__(self, name: str, settings: Upstream, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._clock = clock
        self._client = HttpClient(settings, clock)

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return the metric's series; that it is not known there is an error, that it has none is not."""
        target, now = _target(parameters(query, UpstreamParameters)), self._clock()

        async def ask() -> tuple[RawSample, ...]:
            answer = await self._client.request("GET", target, accept=_EXPLAINED, headers=_JSON)
            if answer.status != HTTPStatus.OK:
                raise _refusal(answer.status, answer.body)
            return await asyncio.to_thread(samples, answer.body, now)

        return await self._client.through(query.text, deadline, ask)

    async def ping(self) -> None:
        """Ask for what it serves."""
        await self._client.get(_ROOT, _PING, headers=_JSON)

    async def aclose(self) -> None:
        """Let go of connections."""
        await self._client.aclose()


def _target(asked: UpstreamParameters) -> str:
    path = f"{_ROOT}/namespaces/{quote(asked.namespace, safe='')}/{quote(asked.metric, safe='')}"
    return f"{path}?labelSelector={quote(asked.selector, safe='')}" if asked.selector else path


def _refusal(status: int, body: bytes) -> BackendError:
    """Tell a metric that it does not know, and one that it cannot read, from a server that is in trouble itself."""
    if status == HTTPStatus.NOT_FOUND:
        return BackendMetricUnknown(detail=_said(body))
    if said := _said(body):
        return BackendRejected(f"HTTP {status} {HTTPStatus(status).phrase}", detail=said)
    return http_errors.of_status(status, body)


class _Status(msgspec.Struct, frozen=True):
    kind: str
    message: str = ""


def _said(body: bytes) -> str:
    """Give the message of a ``Status``; nothing, if it is none: then it was somebody in between who answered."""
    try:
        status = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        return ""
    return status.message[:300] if status.kind == "Status" else ""

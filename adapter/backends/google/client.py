"""Authenticated client of the Cloud Monitoring API."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote

import msgspec

from adapter.backends.connection import http_errors
from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.google.settings import Google
from adapter.backends.google.time_series import GoogleTimeSeries, decode_page
from adapter.backends.google.tokens import TokenSource
from adapter.errors import BackendRejected, BadQuery

T = TypeVar("T")


class _GoogleError(msgspec.Struct):
    status: str = ""
    message: str = ""


class _GoogleErrorBody(msgspec.Struct):
    error: _GoogleError


class GoogleClient:
    """Sends requests with an access token."""

    def __init__(self, settings: Google, clock: Callable[[], datetime]) -> None:
        self._tokens = TokenSource(settings)
        http = HttpSettings(
            url=settings.url,
            tls=settings.tls,
            proxy_url=settings.proxy_url,
            max_connections=settings.max_connections,
            max_response_bytes=settings.max_response_bytes,
            circuit_breaker=settings.circuit_breaker,
        )
        self._http = HttpClient(http, clock, (self._tokens.secrets,))

    async def run(self, query_key: str, deadline: timedelta, operation: Callable[[], Awaitable[T]]) -> T:
        """Run an operation that consists of any number of requests, as ``ProtectedCall.run`` does."""
        return await self._http.run(query_key, deadline, operation)

    async def get(self, target: str) -> bytes:
        """Fetch one document."""
        token = await self._tokens.access_token()
        headers = {"Authorization": f"Bearer {token.token}"}
        if token.quota_project:
            headers["X-Goog-User-Project"] = token.quota_project
        accepted = {HTTPStatus.NOT_FOUND, HTTPStatus.UNAUTHORIZED}
        response = await self._http.request("GET", target, headers=headers, accept=accepted)
        if response.status == HTTPStatus.OK:
            return response.body
        if response.status == HTTPStatus.UNAUTHORIZED:
            self._tokens.reset()
        elif detail := _not_found_message(response.body):
            raise BadQuery("metric not found: check metric.type", detail=detail)
        raise http_errors.from_status(response.status, response.body)

    async def list_time_series(self, target: str, max_series: int) -> list[GoogleTimeSeries]:
        """Fetch all pages of a list of time series."""
        series: list[GoogleTimeSeries] = []
        page_token = ""
        while True:
            page = await asyncio.to_thread(decode_page, await self.get(f"{target}{page_token}"))
            series += page.time_series
            if len(series) > max_series:
                raise BackendRejected("more series than maxSeries")
            if not page.next_page_token:
                return series
            page_token = f"&pageToken={quote(page.next_page_token, safe='')}"

    async def aclose(self) -> None:
        """End running requests and close connections."""
        await self._http.aclose()
        await self._tokens.aclose()


def _not_found_message(body: bytes) -> str:
    """Return the message of a NOT_FOUND error; empty if the response is not one of Google, but of a proxy."""
    try:
        error = msgspec.json.decode(body, type=_GoogleErrorBody).error
    except (msgspec.DecodeError, RecursionError):
        return ""
    return (error.message or error.status)[:300] if error.status == "NOT_FOUND" else ""

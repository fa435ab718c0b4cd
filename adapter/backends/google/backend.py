"""The Google Cloud Monitoring backend. The API accepts one query per request, so that queries are not batched."""

from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from adapter.backends.connection import http_errors
from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.json_body import error_object
from adapter.backends.connection.shared_limits import parse_in_thread
from adapter.backends.google import promql, time_series
from adapter.backends.google.settings import Google, GoogleParameters
from adapter.backends.google.tokens import TokenSource
from adapter.backends.parameters import parameters
from adapter.backends.resilience.rate_limit import RateLimit
from adapter.errors import BackendRejected, BadQuery
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING_TIMEOUT: Final = timedelta(seconds=5)


class GoogleBackend:
    """A client of Cloud Monitoring."""

    def __init__(self, name: str, settings: Google, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock
        self._rate_limit = RateLimit(
            max_concurrent=settings.max_connections,
            min_interval=timedelta(seconds=1) / settings.max_requests_per_second,
        )
        self._tokens = TokenSource(settings, clock)
        self._client = HttpClient(settings.http, clock, (self._tokens.secrets,))

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return the newest value of each series of the filter or the PromQL query."""
        selection = parameters(query, GoogleParameters)
        return await self._client.run(
            query.text, deadline, lambda: self._fetch(selection, query.namespace), namespace=query.namespace
        )

    async def ping(self) -> None:
        """Send a request that is free of charge."""
        target = f"/v3/projects/{self._settings.project}/monitoredResourceDescriptors?pageSize=1"
        await self._client.run("ping", _PING_TIMEOUT, lambda: self._get(target))

    async def aclose(self) -> None:
        await self._client.aclose()
        self._tokens.close()

    async def _fetch(self, selection: GoogleParameters, namespace: str) -> tuple[RawSample, ...]:
        async with self._rate_limit.slot(namespace):
            now, project = self._clock(), selection.project or self._settings.project
            if selection.promql:
                body = await self._get(promql.target(project, selection.promql, now))
                return await parse_in_thread(promql.samples, body, selection.max_series)
            target = time_series.target(selection, project, self._settings.page_size, now)
            series = await self._list_time_series(target, selection.max_series)
            return await parse_in_thread(time_series.samples, series, now)

    async def _list_time_series(self, target: str, max_series: int) -> list[time_series.GoogleTimeSeries]:
        """Fetch all pages of a list of time series."""
        series: list[time_series.GoogleTimeSeries] = []
        page_token = ""
        while True:
            page = await parse_in_thread(time_series.decode_page, await self._get(f"{target}{page_token}"))
            series += page.time_series
            if len(series) > max_series:
                raise BackendRejected("more series than maxSeries")
            if not page.next_page_token:
                return series
            page_token = f"&pageToken={quote(page.next_page_token, safe='')}"

    async def _get(self, target: str) -> bytes:
        """Fetch one document with an access token."""
        headers = await self._tokens.headers()
        accepted = {HTTPStatus.NOT_FOUND, HTTPStatus.UNAUTHORIZED}
        response = await self._client.request("GET", target, headers=headers, accept=accepted)
        if response.status == HTTPStatus.OK:
            return response.body
        if response.status == HTTPStatus.UNAUTHORIZED:
            self._tokens.reset()
        elif (error := error_object(response.body)).get("status") == "NOT_FOUND":
            raise BadQuery("metric not found: check metric.type", detail=str(error.get("message"))[:300])
        raise http_errors.from_status(response.status, response.body)

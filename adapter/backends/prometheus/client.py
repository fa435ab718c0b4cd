"""prometheus-api-client with the project's session; all methods block, so they are called in threads."""

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

from prometheus_api_client import PrometheusConnect

from adapter.backends.connection.http_credentials import HttpCredentials
from adapter.backends.prometheus.connection import AbortableRequest
from adapter.backends.prometheus.parse import ApiResponse
from adapter.backends.prometheus.session import NO_RETRIES, ResponseHolder, Session
from adapter.backends.prometheus.settings import Prometheus
from adapter.errors import BackendTimeout


class Client:
    """Sends requests to one server."""

    def __init__(self, settings: Prometheus, credentials: HttpCredentials) -> None:
        self._settings = settings
        self._session = Session(settings, credentials)
        self._library: Any = PrometheusConnect(
            url=settings.url.rstrip("/"), session=self._session, retry=NO_RETRIES, method=settings.method
        )

    def query(self, request: AbortableRequest, text: str) -> ApiResponse:
        """Evaluate an expression at the current time."""
        # The server stops the evaluation when the response is no longer awaited.
        parameters = {**self._settings.parameters, "timeout": f"{math.ceil(request.seconds_left * 1000)}ms"}
        return self._send(request, lambda: self._library.custom_query(text, params=parameters))

    def series(self, request: AbortableRequest, selector: str, start: datetime, end: datetime) -> ApiResponse:
        """List the series that match and have samples between two times."""
        parameters = {**self._settings.parameters, "match[]": selector}
        return self._send(request, lambda: self._library.get_series(start, end, params=parameters))

    def close(self) -> None:
        """Close idle connections."""
        self._session.close()

    def _send(self, request: AbortableRequest, send: Callable[[], ResponseHolder]) -> ApiResponse:
        if request.is_aborted:  # while it waited for a thread
            raise BackendTimeout("no response in time")
        with request:
            self._session.refresh()
            return send().response

"""prometheus-api-client behind its wall: called in a thread, one call at a time, its answers and failures ours."""

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

from prometheus_api_client import PrometheusConnect

from adapter.backends.prometheus.connection import Call
from adapter.backends.prometheus.credentials import Credentials
from adapter.backends.prometheus.parse import Answer
from adapter.backends.prometheus.session import NEVER, Envelope, Session
from adapter.backends.prometheus.settings import Prometheus
from adapter.errors import BackendError, BackendTimeout


class Client:
    """Asks one server. Everything here waits, so nothing here may run on the event loop."""

    def __init__(self, settings: Prometheus) -> None:
        self._settings = settings
        self._session = Session(settings)
        self._credentials = Credentials(settings)
        self._library: Any = PrometheusConnect(
            url=settings.url.rstrip("/"),
            session=self._session,
            retry=NEVER,
            auth=self._credentials,
            method=settings.method,
        )

    def query(self, call: Call, text: str) -> Answer:
        """Evaluate an expression now."""
        # The server is told too: what nobody waits for any more need not be computed.
        parameters = {**self._settings.parameters, "timeout": f"{math.ceil(call.seconds_left * 1000)}ms"}
        return self._ask(call, lambda: self._library.custom_query(text, params=parameters))

    def series(self, call: Call, selector: str, since: datetime, until: datetime) -> Answer:
        """List the series that match and were heard of between two times."""
        parameters = {**self._settings.parameters, "match[]": selector}
        return self._ask(call, lambda: self._library.get_series(since, until, params=parameters))

    def close(self) -> None:
        """Let go of idle connections."""
        self._session.close()

    def _ask(self, call: Call, ask: Callable[[], Envelope]) -> Answer:
        if call.is_over:
            raise BackendTimeout("no answer in time")
        try:
            with call:
                self._session.refresh()
                return ask().answer
        except BackendError as error:
            cleaned = self._credentials.scrubbed(error.message), self._credentials.scrubbed(error.detail)
            raise type(error)(cleaned[0], detail=cleaned[1]) from None

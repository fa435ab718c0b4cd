"""Account of what was answered: figures, and a line for each request.

It is kept after the answers, for all that were given in one turn of the loop together. To count and to write are small
things that touch much code: done for each answer by itself they would cost as much as finding the answer.
"""

import asyncio
from typing import Final

from adapter import errors
from adapter.api.access_log import AccessLog, Answered
from adapter.auth.caller import ANONYMOUS
from adapter.telemetry import Telemetry

_REFUSALS: Final[dict[type[object], str]] = {errors.Forbidden: "refused", errors.ReviewUnavailable: "failed"}


class Journal:
    """Where the server keeps account of itself."""

    def __init__(self, telemetry: Telemetry, log: AccessLog) -> None:
        self.telemetry = telemetry
        self._access_log = log
        self._answered: list[Answered] = []

    def add(self, answered: Answered, loop: asyncio.AbstractEventLoop) -> None:
        """Take account of one more answer, before the loop comes to what arrives after it."""
        if not self._answered:
            loop.call_soon(self._write)
        self._answered.append(answered)

    def _write(self) -> None:
        answered, self._answered = self._answered, []
        for each in answered:
            self._count(each)
        self._access_log.add(answered)

    def _count(self, answered: Answered) -> None:
        exchange, status, seconds, error = answered
        self.telemetry.requests.add(exchange.endpoint, str(status))
        self.telemetry.latency.add(exchange.endpoint, seconds)
        if exchange.caller is not None:
            self.telemetry.authentications.add("anonymous" if exchange.caller is ANONYMOUS else "passed")
            self.telemetry.authorizations.add(_REFUSALS.get(type(error), "passed"))
        elif isinstance(error, errors.Unauthenticated):
            self.telemetry.authentications.add("refused")
        if isinstance(error, errors.AdapterError) and error.failure is not None:
            self.telemetry.failures.add(error.failure.value)

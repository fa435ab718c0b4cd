"""Account of what was answered: figures, and a line for each request.

It is kept a moment after the answers, for several together. To count and to write are small things that touch much
code: done for each answer by itself they would cost as much as finding the answer. Only few together, though, because
whoever is answered next waits meanwhile.
"""

import asyncio
from typing import Final

from adapter import errors
from adapter.auth.caller import ANONYMOUS
from adapter.server.access_log import AccessLog, Answered
from adapter.telemetry import Telemetry

_REFUSALS: Final[dict[type[object], str]] = {errors.Forbidden: "refused", errors.ReviewUnavailable: "failed"}
_TOGETHER: Final = 16
_LINGER: Final = 0.02
"""Seconds for which an answer waits for others to be written with it."""


class Journal:
    """Where the server keeps account of itself."""

    def __init__(self, telemetry: Telemetry, log: AccessLog) -> None:
        self.telemetry = telemetry
        self._access_log = log
        self._answered: list[Answered] = []
        self._is_awaited = False

    def add(self, answered: Answered, loop: asyncio.AbstractEventLoop) -> None:
        """Take account of one more answer."""
        self._answered.append(answered)
        if len(self._answered) >= _TOGETHER:
            self.write()
        elif not self._is_awaited:
            self._is_awaited = True
            loop.call_later(_LINGER, self._write_later)

    def figures(self) -> tuple[bytes, str]:
        """Write all figures in the text format; return them with their content type."""
        self.write()
        return self.telemetry.render()

    def _write_later(self) -> None:
        self._is_awaited = False
        self.write()

    def write(self) -> None:
        """Write what was not written yet."""
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

"""GET /debug/history/NAMESPACE/NAME: the decision history of an autoscaler, on every replica.

``?at=03:12`` returns the decision that was in force at a moment. ``?since=24h&until=...`` returns the records of a
period, with ``&steps=true`` also their steps, and with ``&whatIf=SPEC`` a replay of them.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Final

from aiohttp import web

from adapter import errors
from adapter.debug.decision_log import DecisionLog
from adapter.debug.formatting import Json
from adapter.debug.history_views import moment_view, period_view
from adapter.debug.replayed_load import recorded_load
from adapter.history.moments import parse_moment
from adapter.history.service import DecisionHistoryService
from adapter.server.request_context import RequestContext
from adapter.server.what_if_endpoint import WHAT_IF, WhatIfEndpoint
from autoscaler.kube.errors import KubeError
from autoscaler.ports import Clock

HISTORY: Final = "/debug/history/"
_DISABLED: Final = "the decision history is disabled: set decisionHistory.enabled to true in the configuration"


class HistoryEndpoint:
    """The endpoint. It shows all namespaces, as the other debugging endpoints do, and needs the same permission."""

    def __init__(
        self, history: DecisionHistoryService | None, log: DecisionLog, clock: Clock, what_if: WhatIfEndpoint
    ) -> None:
        self._history = history
        self._log = log
        self._clock = clock
        self._what_if = what_if

    async def handle(self, context: RequestContext) -> web.Response:
        key = context.path.removeprefix(HISTORY).rstrip("/")
        namespace, _, name = key.partition("/")
        if not namespace or not name or "/" in name:
            raise errors.PathNotFound
        if self._history is None or not self._history.is_enabled:
            raise errors.HistoryUnavailable(_DISABLED)
        try:
            if WHAT_IF in context.query:
                return await self._replay(key, context, self._history)
            view = await self._view(key, context, self._history)
        except KubeError as error:
            raise errors.HistoryUnavailable(f"the decision history cannot be read: {error}") from error
        return context.respond(view)

    async def _view(self, key: str, context: RequestContext, history: DecisionHistoryService) -> Json:
        now = self._clock()
        if "at" in context.query:
            at = _moment(context, "at", now, now)
            if at > now + timedelta(seconds=1):
                raise errors.InvalidRequest(f"at: {at:%Y-%m-%d %H:%M:%S} UTC is in the future")
            return moment_view(key, await history.reader.moment(key, at))
        period = await history.reader.period(key, *self._period(context))
        with_steps = context.query.get("steps") == "true"
        return await asyncio.to_thread(period_view, key, period, with_steps=with_steps)

    async def _replay(self, key: str, context: RequestContext, history: DecisionHistoryService) -> web.Response:
        if (response := await self._what_if.forwarded(context)) is not None:
            return response
        entry = self._log.get(key)
        if entry is None:
            raise errors.AutoscalerNotFound(f"no replay is possible: the spec of {key!r} is known to the leader only")
        period = await history.reader.period(key, *self._period(context))
        return await self._what_if.respond(context, entry, lambda: recorded_load(period))

    def _period(self, context: RequestContext) -> tuple[datetime, datetime]:
        now = self._clock()
        since, until = _moment(context, "since", now, now - timedelta(hours=24)), _moment(context, "until", now, now)
        if since >= until:
            raise errors.InvalidRequest("since: must be before until")
        return since, until


def _moment(context: RequestContext, parameter: str, now: datetime, default: datetime) -> datetime:
    text = context.query.get(parameter)
    if not text:
        return default
    try:
        return parse_moment(text, now)
    except ValueError as error:
        raise errors.InvalidRequest(f"{parameter}: {error}") from None

"""GET /debug/autoscalers/NAMESPACE/NAME: the explanation of the last decision, on every replica.

The leader responds from its decision log, and other replicas forward the request to it. If there is no response, the
response is from the decision history, with its age.
"""

from aiohttp import web

from adapter import errors
from adapter.debug.formatting import Json, format_time
from adapter.debug.history_views import moment_view
from adapter.history.service import DecisionHistoryService
from adapter.server.debug_endpoints import AUTOSCALERS, DebugEndpoints
from adapter.server.leader_forwarding import NotForwarded
from adapter.server.request_context import RequestContext
from adapter.server.what_if_endpoint import WHAT_IF
from autoscaler.kube.errors import KubeError
from autoscaler.ports import Clock


class DecisionEndpoint:
    """The endpoint of one replica."""

    def __init__(self, debug: DebugEndpoints) -> None:
        self._debug = debug

    async def handle(self, context: RequestContext) -> web.Response:
        if WHAT_IF in context.query:
            return await self._debug.replay(context)
        reason, forwarding = NotForwarded(""), self._debug.sources.forwarding
        if forwarding is not None:
            response = await forwarding.forward(context)
            if isinstance(response, web.Response):
                return response
            reason = response
        try:
            return await self._debug.autoscaler(context)
        except errors.AutoscalerNotFound as error:
            sources = self._debug.sources
            if sources.history is None or not sources.history.is_enabled:
                raise
            key = context.path.removeprefix(AUTOSCALERS).rstrip("/")
            view = await _recorded_view(key, sources.history, sources.clock, reason)
            if view is None:
                raise errors.AutoscalerNotFound(_message(key, error.message, reason)) from error
            return context.respond(view)


def _message(key: str, message: str, reason: str) -> str:
    if not reason:
        return message
    return f"no decision for PodAutoscaler {key!r} is recorded, and there is no response from the leader: {reason}"


async def _recorded_view(key: str, history: DecisionHistoryService, clock: Clock, reason: str) -> Json | None:
    """Return the last recorded decision, and since when nothing newer is known; None if there is none."""
    now = clock()
    try:
        moment = await history.reader.moment(key, now)
    except KubeError as error:
        raise errors.HistoryUnavailable(f"the decision history cannot be read: {error}") from error
    view = moment_view(key, moment)
    if view["decision"] is None:
        return None
    until = moment.recorded_until or now
    recorded = {
        "until": format_time(until),
        "ageSeconds": round(max((now - until).total_seconds(), 0), 3),
        "message": view["message"],
        "reason": f"no response from the leader: {reason}" if reason else "the leader has not decided yet",
    }
    return {**view["decision"], "recorded": recorded}

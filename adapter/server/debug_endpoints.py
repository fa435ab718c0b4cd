"""GET /debug/...: the debugging page, and JSON about autoscalers, rules, metrics and backends."""

import mimetypes
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from importlib import resources
from typing import Any, Final, NamedTuple, TypeAlias

from aiohttp import web
from multidict import MultiMapping

from adapter import errors
from adapter.debug.decision_log import DecisionLog
from adapter.debug.formatting import format_time
from adapter.debug.replayed_load import logged_load
from adapter.debug.rule_views import backends_view, comparisons_view, rules_view
from adapter.debug.trace import namespace_trace_view, trace_view
from adapter.debug.views import autoscaler_view, overview
from adapter.decoding.problem import Problem
from adapter.history.service import DecisionHistoryService
from adapter.metrics.comparison import Comparison
from adapter.metrics.read_history import ReadKey
from adapter.metrics.reader import MetricReader, ReadTrace
from adapter.server.history_endpoint import HistoryEndpoint
from adapter.server.leader_forwarding import LeaderForwarding
from adapter.server.overview_endpoint import OverviewEndpoint
from adapter.server.peer_overviews import PeerOverviews
from adapter.server.request_context import RequestContext
from adapter.server.what_if_endpoint import WhatIfEndpoint
from autoscaler.algorithm.formatting import count
from autoscaler.settings import ControllerOptions
from autoscaler.values import selector
from autoscaler.values.selector import SelectorError

Json: TypeAlias = dict[str, Any]

PAGE: Final = "/debug/page"
AUTOSCALERS: Final = "/debug/autoscalers/"
METRICS: Final = "/debug/metrics/"

_SECURITY_HEADERS: Final = {
    # No content of other origins, no inline scripts, no frames: a label that contains a script stays text.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class DebugSources(NamedTuple):
    """The data that the endpoints show."""

    decision_log: DecisionLog
    reader: MetricReader
    problems: Callable[[], Mapping[str, tuple[Problem, ...]]]
    clock: Callable[[], datetime]
    leader: Callable[[], str] = str
    """Returns the identity of the leader; empty if it is not known."""

    comparisons: Iterable[tuple[ReadKey, Comparison]] = ()
    history: DecisionHistoryService | None = None
    forwarding: LeaderForwarding | None = None
    """Forwards requests to the leader; None: this process serves all of them itself."""

    options: ControllerOptions = ControllerOptions()
    """Of the controller, for replays."""


class DebugEndpoints:
    """The debugging endpoints. They show all namespaces, so only operators should be authorized to read them."""

    def __init__(self, sources: DebugSources, poll_timeout: timedelta) -> None:
        """Create the endpoints; ``poll_timeout`` limits long polling and replays."""
        self.sources = sources
        self.what_if = WhatIfEndpoint(sources.options, sources.forwarding, poll_timeout)
        self.history = HistoryEndpoint(sources.history, sources.decision_log, sources.clock, self.what_if)
        self._overview_endpoint = OverviewEndpoint(
            self._overview,
            sources.decision_log,
            sources.clock,
            poll_timeout,
            _SECURITY_HEADERS,
            None if sources.forwarding is None else PeerOverviews(sources.forwarding),
        )
        self.overview = self._overview_endpoint.handle

    def begin_shutdown(self) -> None:
        """End long polling: waiting requests get their response at their next check."""
        self._overview_endpoint.is_shutting_down = True

    async def rules(self, context: RequestContext) -> web.Response:
        return context.respond(self._rules_view())

    async def backends(self, context: RequestContext) -> web.Response:
        return context.respond(await backends_view(self.sources.reader))

    async def comparisons(self, context: RequestContext) -> web.Response:
        return context.respond(comparisons_view(self.sources.comparisons, self.sources.reader.delegate))

    async def metric(self, context: RequestContext) -> web.Response:
        """Serve ``/debug/metrics/NAMESPACE/METRIC?labelSelector=...``: read the metric and return the trace."""
        return context.respond(trace_view(await self._read(context), self.sources.reader))

    async def namespace_metric(self, context: RequestContext) -> web.Response:
        """Serve the same for a caller who may see only this namespace."""
        return context.respond(namespace_trace_view(await self._read(context), self.sources.reader))

    async def _read(self, context: RequestContext) -> ReadTrace:
        namespace, _, metric = context.path.removeprefix(METRICS).rstrip("/").partition("/")
        if not namespace or not metric or "/" in metric:
            raise errors.PathNotFound
        try:
            label_selector = selector.parse(context.query.get("labelSelector", ""))
        except SelectorError as error:
            raise errors.InvalidRequest(f"unable to parse the label selector: {error}") from error
        return await self.sources.reader.read(namespace, metric, label_selector)

    async def page(self, _: RequestContext) -> web.Response:
        return _file_response("index.html")

    async def file(self, context: RequestContext) -> web.Response:
        """Serve ``/debug/page/FILE``."""
        return _file_response(context.path.removeprefix(f"{PAGE}/"))

    async def autoscaler(self, context: RequestContext) -> web.Response:
        """Serve ``/debug/autoscalers/NAMESPACE/NAME``: the explanation of the last decision."""
        key = context.path.removeprefix(AUTOSCALERS).rstrip("/")
        view = self._autoscaler_view(key)
        if view is None:
            raise errors.AutoscalerNotFound(_not_found_message(key, self.sources))
        return context.respond(view, _SECURITY_HEADERS)

    async def replay(self, context: RequestContext) -> web.Response:
        """Serve ``/debug/autoscalers/NAMESPACE/NAME?whatIf=...``: a replay over the decision log."""
        key = context.path.removeprefix(AUTOSCALERS).rstrip("/")
        if (response := await self.what_if.forwarded(context)) is not None:
            return response
        entry = self.sources.decision_log.get(key)
        if entry is None:
            raise errors.AutoscalerNotFound(_not_found_message(key, self.sources))
        timeline, sync_period = entry.timeline.copy(), self.sources.options.settings.sync_period
        return await self.what_if.respond(context, entry, lambda: logged_load(timeline, entry.decision.at, sync_period))

    def _overview(self, query: MultiMapping[str]) -> Json:
        """Return the overview for the query parameters."""
        sources = self.sources
        all_rules = self._rules_view()
        content: Json = {
            "leader": _leader_pod(sources),
            "outdatedSince": format_time(sources.decision_log.outdated_since),
            "historyProblem": None if sources.history is None else sources.history.writer.problem,
            **overview(sources.decision_log, query.get("text", ""), query.get("state", "")),
            "rulesFailing": [rule["name"] for rule in all_rules["rules"] if rule["health"] == "failing"],
            "rulesTotal": len(all_rules["rules"]),
        }
        if "rules" in query:
            content["rules"] = all_rules
            for rule in all_rules["rules"]:
                (rule["lastFetch"] or {}).pop("ageSeconds", None)  # would change the ETag every second
        if selected := query.get("selected"):
            content["selected"] = self._autoscaler_view(selected, with_timeline=True)
        return content

    def _rules_view(self) -> Json:
        return rules_view(self.sources.reader, dict(self.sources.problems()))

    def _autoscaler_view(self, key: str, *, with_timeline: bool = False) -> Json | None:
        entry = self.sources.decision_log.get(key)
        if entry is None:
            return None
        timeline = {"timeline": entry.timeline.columns()} if with_timeline else {}
        outdated_since = format_time(self.sources.decision_log.outdated_since)
        return {**autoscaler_view(key, entry), "outdatedSince": outdated_since, **timeline}


_FILES: Final = {
    file.name: file.read_bytes() for file in (resources.files("adapter.debug") / "static").iterdir() if file.is_file()
}
"""The files of the page, read at import, because file access would block the event loop."""


def _file_response(name: str) -> web.Response:
    if name not in _FILES:
        raise errors.PathNotFound
    content_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return web.Response(body=_FILES[name], content_type=content_type, charset="utf-8", headers=_SECURITY_HEADERS)


def _leader_pod(sources: DebugSources) -> str:
    """Return the pod name, which is the first part of the leader's identity."""
    return sources.leader().partition("_")[0]


def _not_found_message(key: str, sources: DebugSources) -> str:
    if not len(sources.decision_log):
        leader = _leader_pod(sources) or "unknown"
        return f"{key}: this replica has made no decisions, and the leader ({leader}) did not respond"
    others = count(len(sources.decision_log), "other PodAutoscaler")
    return f"no decision for PodAutoscaler {key!r}; this replica has decisions for {others}"

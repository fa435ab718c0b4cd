"""GET /debug/...: the debugging page, and JSON about autoscalers, rules, metrics and backends.

The page requests the overview with the ETag of its last response (long polling); the server responds when the overview
has changed, or after a timeout.
"""

import asyncio
import hashlib
import mimetypes
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from importlib import resources
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from aiohttp import web

from adapter import errors
from adapter.debug.decision_log import DecisionLog
from adapter.debug.formatting import format_time
from adapter.debug.rule_views import backends_view, comparisons_view, rules_view
from adapter.debug.trace import trace_view
from adapter.debug.views import autoscaler_view, overview
from adapter.decoding.problem import Problem
from adapter.metrics.comparison import Comparison
from adapter.metrics.read_history import ReadKey
from adapter.metrics.reader import MetricReader
from adapter.server.content_negotiation import JSON
from adapter.server.request_context import RequestContext
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
_RULE_CHECK_INTERVAL: Final = 1.0
"""Seconds after which a waiting request checks the rules, whose changes are not notified."""

_DEBOUNCE: Final = 0.2
"""Seconds to wait after a change, so that the many decisions of a large cluster cause few responses."""

_MAX_WAITING: Final = 32
"""Requests that may wait at the same time; further requests get an immediate response."""

_MAX_WAITING_PER_CALLER: Final = 8


class DebugSources(NamedTuple):
    """The data that the endpoints show."""

    decision_log: DecisionLog
    reader: MetricReader
    problems: Callable[[], Mapping[str, tuple[Problem, ...]]]
    clock: Callable[[], datetime]
    leader: Callable[[], str] = str
    """Returns the identity of the leader; empty if it is not known."""

    comparisons: Iterable[tuple[ReadKey, Comparison]] = ()


class DebugEndpoints:
    """The debugging endpoints. They show all namespaces, so only operators should be authorized to read them."""

    def __init__(self, sources: DebugSources, poll_timeout: timedelta) -> None:
        self._sources = sources
        self._poll_timeout = poll_timeout.total_seconds()
        self._waiting: Counter[str] = Counter()
        """Waiting requests by caller."""
        self._is_shutting_down = False

    def begin_shutdown(self) -> None:
        """End long polling: waiting requests get their response at their next check."""
        self._is_shutting_down = True

    async def rules(self, context: RequestContext) -> web.Response:
        return context.respond(self._rules_view())

    async def backends(self, context: RequestContext) -> web.Response:
        return context.respond(await backends_view(self._sources.reader))

    async def comparisons(self, context: RequestContext) -> web.Response:
        return context.respond(comparisons_view(self._sources.comparisons, self._sources.reader.delegate))

    async def metric(self, context: RequestContext) -> web.Response:
        """Serve ``/debug/metrics/NAMESPACE/METRIC?labelSelector=...``: read the metric and return the trace."""
        namespace, _, metric = context.path.removeprefix(METRICS).rstrip("/").partition("/")
        if not namespace or not metric or "/" in metric:
            raise errors.PathNotFound
        try:
            label_selector = selector.parse(context.query.get("labelSelector", ""))
        except SelectorError as error:
            raise errors.InvalidRequest(f"unable to parse the label selector: {error}") from error
        trace = await self._sources.reader.read(namespace, metric, label_selector)
        return context.respond(trace_view(trace, self._sources.reader))

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
            raise errors.AutoscalerNotFound(_not_found_message(key, self._sources))
        return context.respond(view, _SECURITY_HEADERS)

    async def overview(self, context: RequestContext) -> web.Response:
        """Serve ``/debug/overview``; with ``If-None-Match``, wait until the overview has changed."""
        known_etag, loop = context.request.headers.get("If-None-Match"), asyncio.get_running_loop()
        deadline, caller = loop.time() + self._poll_timeout, context.caller.name if context.caller else ""
        while True:
            version = self._sources.decision_log.version
            body, etag = self._overview(context)
            remaining = deadline - loop.time()
            if etag != known_etag or remaining <= 0 or not self._may_wait(caller):
                break
            self._waiting[caller] += 1
            try:
                await self._sources.decision_log.wait_for_change(version, min(remaining, _RULE_CHECK_INTERVAL))
                await asyncio.sleep(min(remaining, _DEBOUNCE))
            finally:
                self._waiting -= Counter((caller,))  # removes a caller without waiting requests
        headers = {"ETag": etag, "X-Now": format_time(self._sources.clock()) or "", **_SECURITY_HEADERS}
        if etag == known_etag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=JSON.media, headers=headers)

    def _may_wait(self, caller: str) -> bool:
        has_place = self._waiting.total() < _MAX_WAITING and self._waiting[caller] < _MAX_WAITING_PER_CALLER
        return has_place and not self._is_shutting_down

    def _overview(self, context: RequestContext) -> tuple[bytes, str]:
        """Return the overview for the query parameters, and its ETag."""
        sources, query = self._sources, context.query
        all_rules = self._rules_view()
        content: Json = {
            "leader": _leader_pod(sources),
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
        body = msgspec.json.encode(content)
        return body, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'

    def _rules_view(self) -> Json:
        return rules_view(self._sources.reader, dict(self._sources.problems()))

    def _autoscaler_view(self, key: str, *, with_timeline: bool = False) -> Json | None:
        entry = self._sources.decision_log.get(key)
        if entry is None:
            return None
        timeline = {"timeline": entry.timeline.columns()} if with_timeline else {}
        return {**autoscaler_view(key, entry), **timeline}


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
        return f"{key}: this replica has made no decisions; ask the leader ({leader})"
    return f"no decision for PodAutoscaler {key!r}; this replica has decisions for {len(sources.decision_log)} others"

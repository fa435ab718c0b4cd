"""The routes of the debugging endpoints: below /debug, and as resources of the aggregated API debug.steadyscale.dev."""

from dataclasses import replace

from aiohttp import web

from adapter.server.compression import compressing
from adapter.server.debug_api_paths import debug_path
from adapter.server.debug_endpoints import AUTOSCALERS, METRICS, PAGE, DebugEndpoints
from adapter.server.decision_endpoint import DecisionEndpoint
from adapter.server.history_endpoint import HISTORY
from adapter.server.metric_list_endpoint import ALL_METRICS, MetricListEndpoint
from adapter.server.request_context import RequestContext
from adapter.server.route import Handler, Route


class DebugRoutes:
    """The routes of the debugging endpoints. Requests about what only the leader knows are forwarded to it."""

    def __init__(self, debug: DebugEndpoints) -> None:
        forwarding = debug.sources.forwarding

        def leader_first(handler: Handler, seconds: float | None = 5) -> Handler:
            return handler if forwarding is None else forwarding.first(handler, seconds)

        metric_list = leader_first(MetricListEndpoint(debug.sources).handle)
        self._namespace_metric = _route(debug.namespace_metric, "debug_metric")
        self._metric_list = _route(metric_list, "debug_metric_list")
        overview = leader_first(debug.overview, seconds=None)  # waits for changes, within the deadline of the request
        self.paths = {
            "/debug/rules": _route(leader_first(debug.rules), "debug_rules"),
            "/debug/backends": _route(debug.backends, "debug_backends"),
            "/debug/comparisons": _route(debug.comparisons, "debug_comparisons"),
            "/debug/overview": _route(overview, "debug_overview", limited=False),  # has a limit of its own
            PAGE: _route(debug.page, "debug_page"),
            ALL_METRICS: self._metric_list,
        }
        self.prefixes = {
            METRICS: _route(debug.metric, "debug_metric"),
            AUTOSCALERS: _route(DecisionEndpoint(debug).handle, "debug_autoscaler"),
            HISTORY: _route(debug.history.handle, "debug_history"),
            f"{PAGE}/": _route(debug.file, "debug_page"),
        }

    def lookup(self, context: RequestContext) -> Route | None:
        """Return the route of a resource of the aggregated API, or of a list of metrics; None for any other path."""
        if (path := debug_path(context.attributes, context.path)) is None:
            return self._metric_list if _is_metric_list(context.path) else None
        if _is_metric_list(path):
            route = self._metric_list
        elif path.startswith(METRICS):
            route = self._namespace_metric
        else:
            below = (found for prefix, found in self.prefixes.items() if path.startswith(prefix))
            route = self.paths.get(path) or next(below)

        async def handle(context: RequestContext) -> web.StreamResponse:
            return await route.handler(replace(context, path=path))

        return route._replace(handler=handle)


def _is_metric_list(path: str) -> bool:
    namespace = path.removeprefix(METRICS)
    return path == ALL_METRICS or (namespace not in {"", path} and "/" not in namespace)


def _route(handler: Handler, endpoint: str, *, limited: bool = True) -> Route:
    return Route(compressing(handler), endpoint, limited)

"""The routes of the server."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiohttp import web

from adapter import errors
from adapter.auth.attributes import ResourceAttributes
from adapter.server import discovery, openapi, version
from adapter.server.debug_endpoints import METRICS, DebugEndpoints
from adapter.server.debug_page import AUTOSCALERS, PAGE
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.group import GROUP, ROOT, VERSION
from adapter.server.health import Health
from adapter.server.request_context import RequestContext

Handler = Callable[[RequestContext], Awaitable[web.StreamResponse]]
_METRIC_SEGMENTS = 6  # apis, group, version, namespaces, the namespace, the metric
_NOT_ALLOWED = "the server does not allow this method on the requested resource"


class Route(NamedTuple):
    """A handler, its name in metrics and logs, and whether it counts against the concurrency limit."""

    handler: Handler
    endpoint: str
    limited: bool = True


class Routes:
    """Finds the route of a request. One trailing slash is ignored; there are no redirects."""

    def __init__(
        self,
        metrics: ExternalMetrics,
        health: Health,
        render_metrics: Callable[[], tuple[bytes, str]],
        debug: DebugEndpoints | None = None,
    ) -> None:
        table = {
            "/apis": Route(discovery.groups, "groups", limited=False),
            f"/apis/{GROUP}": Route(discovery.group, "group", limited=False),
            ROOT: Route(discovery.resources, "resources", limited=False),
            "/openapi/v2": Route(openapi.v2, "openapi_v2"),
            "/openapi/v3": Route(openapi.v3_index, "openapi_v3"),
            openapi.V3_PATH: Route(openapi.v3, "openapi_v3_document"),
            "/version": Route(version.version, "version"),
            "/metrics": Route(version.metrics(render_metrics), "metrics"),
            "/healthz": Route(health.handler("healthz"), "healthz", limited=False),
            "/livez": Route(health.handler("livez"), "livez", limited=False),
            "/readyz": Route(health.handler("readyz"), "readyz", limited=False),
        }
        if debug is not None:
            table |= {
                "/debug/rules": Route(debug.rules, "debug_rules"),
                "/debug/backends": Route(debug.backends, "debug_backends"),
                "/debug/comparisons": Route(debug.comparisons, "debug_comparisons"),
            }
        self._prefixes: dict[str, Route] = {}
        if debug is not None:
            self._prefixes[METRICS] = Route(debug.metric, "debug_metric")
        if debug is not None and (page := debug.page) is not None:
            table |= {
                PAGE: Route(page.html, "debug_page"),
                "/debug/overview": Route(page.overview, "debug_overview", limited=False),  # has a limit of its own
            }
            self._prefixes |= {
                f"{PAGE}/": Route(page.file, "debug_page"),
                AUTOSCALERS: Route(page.autoscaler, "debug_autoscaler"),
            }
        self._table = {**table, "": Route(version.paths(table), "paths")}
        self._check = Route(health.single_check, "health_check", limited=False)
        self._metric = Route(metrics.read, "metric")

    def find(self, context: RequestContext) -> Route:
        """Return the route; raise ``PathNotFound``, or ``MethodNotAllowed`` for other methods than GET."""
        route = self._table.get(context.path.removesuffix("/"))
        if route is None and _is_metric(context):
            route = self._metric
        if route is None and context.path.startswith(("/healthz/", "/livez/", "/readyz/")):
            route = self._check
        if route is None:
            route = next((below for prefix, below in self._prefixes.items() if context.path.startswith(prefix)), None)
        if route is None:
            raise errors.PathNotFound
        if context.request.method != "GET":
            raise errors.MethodNotAllowed(_NOT_ALLOWED)
        return route


def _is_metric(context: RequestContext) -> bool:
    attributes = context.attributes
    return (
        isinstance(attributes, ResourceAttributes)
        and (attributes.group, attributes.version) == (GROUP, VERSION)
        and attributes.namespace != ""
        and attributes.resource not in {"", "namespaces"}
        and len(context.path.strip("/").split("/")) == _METRIC_SEGMENTS
    )

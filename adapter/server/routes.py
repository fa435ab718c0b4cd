"""The table of URLs."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiohttp import web

from adapter import errors
from adapter.auth.attributes import ResourceAttributes
from adapter.server import discovery, openapi, version
from adapter.server.debug_endpoints import METRICS, Debug
from adapter.server.debug_page import AUTOSCALERS, PAGE
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.group import GROUP, ROOT, VERSION
from adapter.server.health import Health
from adapter.server.request_context import RequestContext

Handler = Callable[[RequestContext], Awaitable[web.StreamResponse]]
_METRIC_SEGMENTS = 6  # apis, group, version, namespaces, the namespace, the metric
_READ = "the server does not allow this method on the requested resource"


class Route(NamedTuple):
    """Who answers, what to call it in our own figures, and whether it counts against the limit."""

    handler: Handler
    endpoint: str
    limited: bool = True


class Routes:
    """Finds who answers a request. One trailing slash is tolerated, nothing is redirected."""

    def __init__(
        self,
        metrics: ExternalMetrics,
        health: Health,
        figures: Callable[[], tuple[bytes, str]],
        debug: Debug | None = None,
    ) -> None:
        table = {
            "/apis": Route(discovery.groups, "groups", limited=False),
            f"/apis/{GROUP}": Route(discovery.group, "group", limited=False),
            ROOT: Route(discovery.resources, "resources", limited=False),
            "/openapi/v2": Route(openapi.v2, "openapi_v2"),
            "/openapi/v3": Route(openapi.v3_index, "openapi_v3"),
            openapi.V3_PATH: Route(openapi.v3, "openapi_v3_document"),
            "/version": Route(version.version, "version"),
            "/metrics": Route(version.metrics(figures), "metrics"),
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
        self._below: dict[str, Route] = {}
        if debug is not None:
            self._below[METRICS] = Route(debug.metric, "debug_metric")
        if debug is not None and (page := debug.page) is not None:
            table |= {
                PAGE: Route(page.html, "debug_page"),
                "/debug/picture": Route(page.picture, "debug_picture", limited=False),  # it has a limit of its own
            }
            self._below |= {
                f"{PAGE}/": Route(page.file, "debug_page"),
                AUTOSCALERS: Route(page.autoscaler, "debug_autoscaler"),
            }
        self._table = {**table, "": Route(version.paths(table), "paths")}
        self._check = Route(health.one, "health_check", limited=False)
        self._metric = Route(metrics.read, "metric")

    def find(self, exchange: RequestContext) -> Route:
        """Return who answers; raise ``PathNotFound`` or, for what is there and not to be read, ``MethodNotAllowed``."""
        route = self._table.get(exchange.path.removesuffix("/"))
        if route is None and _is_metric(exchange):
            route = self._metric
        if route is None and exchange.path.startswith(("/healthz/", "/livez/", "/readyz/")):
            route = self._check
        if route is None:
            route = next((found for path, found in self._below.items() if exchange.path.startswith(path)), None)
        if route is None:
            raise errors.PathNotFound
        if exchange.request.method != "GET":
            raise errors.MethodNotAllowed(_READ)
        return route


def _is_metric(exchange: RequestContext) -> bool:
    asked = exchange.attributes
    return (
        isinstance(asked, ResourceAttributes)
        and (asked.group, asked.version) == (GROUP, VERSION)
        and asked.namespace != ""
        and asked.resource not in {"", "namespaces"}
        and len(exchange.path.strip("/").split("/")) == _METRIC_SEGMENTS
    )

"""The routes of the server, and the endpoints /, /version and /metrics."""

import platform
from collections.abc import Callable

from aiohttp import web

from adapter import errors
from adapter.auth.attributes import ResourceAttributes
from adapter.server import discovery, openapi
from adapter.server.content_negotiation import JSON
from adapter.server.debug_endpoints import DebugEndpoints
from adapter.server.debug_routes import DebugRoutes
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.health import Health
from adapter.server.request_context import RequestContext
from adapter.server.route import Route
from adapter.server.serialization import GROUP, VERSION, to_bytes
from adapter.version import package_version

_METRIC_SLASHES = 5  # apis/GROUP/VERSION/namespaces/NAMESPACE/METRIC
_NOT_ALLOWED = "the server does not allow this method on the requested resource"


class Routes:
    """Finds the route of a request. One trailing slash is ignored; there are no redirects."""

    def __init__(
        self,
        metrics: ExternalMetrics,
        health: Health,
        render_metrics: Callable[[], tuple[bytes, str]],
        debug: DebugEndpoints | None = None,
    ) -> None:
        self._render_metrics = render_metrics
        self._metric = Route(metrics.read, "metric")
        self._paths = {
            "": Route(self._root, "paths"),
            "/apis": Route(discovery.groups, "groups", limited=False),
            **{f"/apis/{one.name}": Route(discovery.group, "group", limited=False) for one in discovery.API_GROUPS},
            **{one.root: Route(discovery.resources, "resources", limited=False) for one in discovery.API_GROUPS},
            "/openapi/v2": Route(openapi.v2, "openapi_v2"),
            "/openapi/v3": Route(openapi.v3_index, "openapi_v3"),
            openapi.V3_PATH: Route(openapi.v3, "openapi_v3_document"),
            "/version": Route(_version, "version"),
            "/metrics": Route(self._metrics, "metrics"),
        }
        self._prefixes: dict[str, Route] = {}
        for name in ("healthz", "livez", "readyz"):
            self._paths[f"/{name}"] = Route(health.all_checks, name, limited=False)
            self._prefixes[f"/{name}/"] = Route(health.single_check, "health_check", limited=False)
        self._debug_routes = None if debug is None else DebugRoutes(debug)
        if self._debug_routes is not None:
            self._paths |= self._debug_routes.paths
            self._prefixes |= self._debug_routes.prefixes

    def find(self, context: RequestContext) -> Route:
        """Return the route; raise ``PathNotFound``, or ``MethodNotAllowed`` for other methods than GET."""
        route = self.lookup(context)
        if route is None:
            raise errors.PathNotFound
        if context.request.method != "GET":
            raise errors.MethodNotAllowed(_NOT_ALLOWED)
        return route

    def lookup(self, context: RequestContext) -> Route | None:
        """Return the route of the path, for any method; None if there is none."""
        path = context.path
        if self._debug_routes is not None and (found := self._debug_routes.lookup(context)) is not None:
            return found
        route = self._metric if _is_metric(context) else self._paths.get(path.removesuffix("/"))
        if route is None:
            route = next((below for prefix, below in self._prefixes.items() if path.startswith(prefix)), None)
        return route

    async def _root(self, context: RequestContext) -> web.Response:
        """Serve ``/``: the list of paths."""
        media = context.negotiate((JSON,)).media
        return web.Response(body=to_bytes({"paths": sorted(filter(None, self._paths))}, media), content_type=media)

    async def _metrics(self, _: RequestContext) -> web.Response:
        body, content_type = self._render_metrics()
        return web.Response(body=body, headers={"Content-Type": content_type})


def _is_metric(context: RequestContext) -> bool:
    attributes = context.attributes
    return (
        isinstance(attributes, ResourceAttributes)
        and attributes.group == GROUP
        and attributes.version == VERSION
        and attributes.namespace != ""
        and attributes.resource not in {"", "namespaces"}
        and context.path.strip("/").count("/") == _METRIC_SLASHES
    )


def _version_info() -> dict[str, str]:
    """Return the version as Kubernetes' version.Info, whose fields are all strings."""
    version = package_version()
    major, minor = version.split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{version}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


_VERSION_INFO = _version_info()


async def _version(context: RequestContext) -> web.Response:
    return context.respond(_VERSION_INFO)

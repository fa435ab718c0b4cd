"""The paths of the debugging endpoints in the aggregated API ``debug.steadyscale.dev``. Pure.

The API server forwards requests below ``/apis/GROUP/VERSION`` with the identity of the user, so no port has to be
forwarded. Each endpoint is a resource there: RBAC grants it by name and namespace. ``/debug/...`` has the same
endpoints for direct connections.
"""

from typing import Final

from adapter.auth.attributes import Attributes, ResourceAttributes

GROUP: Final = "debug.steadyscale.dev"
VERSION: Final = "v1alpha1"
ROOT: Final = f"/apis/{GROUP}/{VERSION}"
API_SERVICE: Final = f"{VERSION}.{GROUP}"

DECISIONS: Final = "decisions"
HISTORIES: Final = "histories"
METRICS: Final = "metrics"
VIEWS: Final = "views"
_INDEX: Final = "index.html"
_VIEW_NAMES: Final = frozenset({"overview", "rules", "backends", "comparisons"})

_OBJECTS: Final = {"autoscalers": DECISIONS, "history": HISTORIES, "metrics": METRICS}
"""Resources of one object in a namespace, by the first segment below ``/debug``."""

_PREFIXES: Final = {resource: prefix for prefix, resource in _OBJECTS.items()}


def aggregated_path(path: str) -> str:
    """Return the path in the aggregated API for a path below ``/debug/``, which may be percent-encoded."""
    match path.removeprefix("/debug/").split("/"):
        case [prefix, namespace, name] if prefix in _OBJECTS:
            return f"{ROOT}/namespaces/{namespace}/{_OBJECTS[prefix]}/{name}"
        case ["metrics", namespace]:
            return f"{ROOT}/namespaces/{namespace}/{METRICS}"
        case ["metrics"]:
            return f"{ROOT}/{METRICS}"
        case ["page"]:
            return f"{ROOT}/{VIEWS}/{_INDEX}"
        case below:
            return f"{ROOT}/{VIEWS}/{below[-1]}"


def debug_path(attributes: Attributes, path: str) -> str | None:
    """Return the path below ``/debug/`` for the authorized attributes of a request; None if there is no such resource.

    Only the attributes determine the result, so that nothing else than what was authorized can be served. ``path``
    must have no segments beyond them.
    """
    if not isinstance(attributes, ResourceAttributes) or (attributes.group, attributes.version) != (GROUP, VERSION):
        return None
    namespace, resource, name = attributes.namespace, attributes.resource, attributes.name
    below = [*(["namespaces", namespace] if namespace else []), resource, *([name] if name else [])]
    if path.strip("/").split("/") != ["apis", GROUP, VERSION, *below]:
        return None
    match attributes.verb, bool(namespace), resource, bool(name):
        case "get", True, _, True if resource in _PREFIXES:
            return f"/debug/{_PREFIXES[resource]}/{namespace}/{name}"
        case "list", True, "metrics", False:
            return f"/debug/metrics/{namespace}"
        case "list", False, "metrics", False:
            return "/debug/metrics"
        case "get", False, "views", True:
            return f"/debug/{name}" if name in _VIEW_NAMES else f"/debug/page/{name}"
        case _:
            return None

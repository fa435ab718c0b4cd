"""Parsing of request paths into kind, namespace, name and subresource."""

from typing import NamedTuple

from adapter.fakecluster.api_errors import unknown_resource
from adapter.fakecluster.kinds import Kind, Kinds


class ResourcePath(NamedTuple):
    """The collection, object or subresource that a request addresses."""

    kind: Kind
    namespace: str
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


def parse_path(path: str, kinds: Kinds) -> ResourcePath:
    """Parse a path such as ``/apis/apps/v1/namespaces/shop/deployments/web/scale``; raise 404 if it is not served."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            raise unknown_resource()
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[2:]
    kind = kinds.find(group, version, rest[0]) if 0 < len(rest) < 4 else None
    name, subresource = (*rest[1:], "", "")[:2]
    if kind is None or not _is_served(ResourcePath(kind, namespace, name, subresource)):
        raise unknown_resource()
    return ResourcePath(kind, namespace, name, subresource)


def _is_served(path: ResourcePath) -> bool:
    kind = path.kind
    if not {"": True, "status": kind.has_status, "scale": kind.scale is not None}.get(path.subresource, False):
        return False
    return kind.namespaced is bool(path.namespace) or not path.name

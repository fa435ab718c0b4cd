"""What a path names: a kind, and in it a collection, an object or a subresource."""

from typing import NamedTuple

from adapter.fakecluster.api_errors import no_such_path
from adapter.fakecluster.kinds import Kind, Kinds


class Place(NamedTuple):
    """Where a request goes."""

    kind: Kind
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name


def find_place(path: str, kinds: Kinds) -> Place:
    """Make sense of a path such as ``/apis/apps/v1/namespaces/shop/deployments/web/scale``, or refuse it."""
    group, version, rest = _split(path)
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[2:]
    kind = kinds.find(group, version, rest[0]) if 0 < len(rest) < 4 else None
    name, subresource = (*rest[1:], "", "")[:2]
    if kind is None or not _exists(Place(kind, namespace, name, subresource)):
        raise no_such_path()
    return Place(kind, namespace, name, subresource)


def _exists(place: Place) -> bool:
    if place.subresource == "status" and not place.kind.has_status:
        return False
    if place.subresource == "scale" and place.kind.scale is None:
        return False
    if place.subresource not in {"", "status", "scale"}:
        return False
    return place.kind.namespaced is bool(place.namespace) or not place.name


def _split(path: str) -> tuple[str, str, list[str]]:
    words = path.strip("/").split("/")
    if words[0] == "api" and len(words) > 1:
        return "", words[1], words[2:]
    if words[0] == "apis" and len(words) > 2:
        return words[1], words[2], words[3:]
    raise no_such_path()

"""The attributes of a request, as in the spec of a SubjectAccessReview.

They are parsed from the decoded path exactly as Kubernetes does, and only here: the handler takes namespace and metric
from the authorized attributes, so that it cannot serve anything else.
"""

from collections.abc import Mapping
from typing import TypeAlias

from autoscaler.types.record import Record

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_NAME_FIELDS = ("metadata.name==", "metadata.name=")


class ResourceAttributes(Record, frozen=True, cache_hash=True):
    """A request for a resource: ``spec.resourceAttributes``."""

    verb: str
    group: str
    version: str
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""


class NonResourceAttributes(Record, frozen=True, cache_hash=True):
    """A request for another path: ``spec.nonResourceAttributes``."""

    verb: str
    path: str


Attributes: TypeAlias = ResourceAttributes | NonResourceAttributes


def attributes_of(method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """Return a request's attributes as the API server's own request parser determines them."""
    parts = path.strip("/").split("/")
    if parts[0] != "apis" or len(parts) < 4:
        return NonResourceAttributes(verb=method.lower(), path=path)
    _, group, version, *rest = parts
    namespace, (resource, name, subresource) = _resource(rest)
    return ResourceAttributes(
        verb=_verb(method, query.get("watch"), named=bool(name)),
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        name=name or _name_of_field_selector(query.get("fieldSelector", "")),
        subresource=subresource,
    )


def _resource(rest: list[str]) -> tuple[str, tuple[str, str, str]]:
    """Split the path after the version into namespace and (resource, name, subresource)."""
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    resource, name, subresource = [*rest, "", ""][:3]
    return namespace, (resource, name, subresource)


def _verb(method: str, watch: str | None, *, named: bool) -> str:
    verb = _VERBS.get(method, "")
    if named:
        return verb
    if verb == "delete":
        return "deletecollection"
    if verb != "get":
        return verb
    return "watch" if is_true(watch) else "list"


def is_true(value: str | None) -> bool:
    """Parse a boolean query parameter as Kubernetes does: only absence, ``false`` and ``0`` are false."""
    return value is not None and value.lower() not in {"false", "0"}


def _name_of_field_selector(text: str) -> str:
    return next((text.removeprefix(prefix) for prefix in _NAME_FIELDS if text.startswith(prefix)), "")

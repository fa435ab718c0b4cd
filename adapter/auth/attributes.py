"""What a request asks leave for, in the words of a SubjectAccessReview.

Read from the decoded path exactly as Kubernetes reads it, and only here: the handler takes namespace and metric from
what was authorized, so that the two can never disagree.
"""

from collections.abc import Mapping
from typing import TypeAlias

from autoscaler.types.record import Record

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_NAME_FIELDS = ("metadata.name==", "metadata.name=")


class ResourceAttributes(Record, frozen=True, cache_hash=True):
    """A verb on a resource; on the wire, ``spec.resourceAttributes``."""

    verb: str
    group: str
    version: str
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""


class NonResourceAttributes(Record, frozen=True, cache_hash=True):
    """A verb on a plain path; on the wire, ``spec.nonResourceAttributes``."""

    verb: str
    path: str


Attributes: TypeAlias = ResourceAttributes | NonResourceAttributes


def attributes_of(method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """Read a request the way the API server's own authorizer does."""
    return _attributes(method, path, query.get("watch"), query.get("fieldSelector", ""))


def _attributes(method: str, path: str, watch: str | None, field: str) -> Attributes:
    parts = path.strip("/").split("/")
    if parts[0] != "apis" or len(parts) < 4:
        return NonResourceAttributes(verb=method.lower(), path=path)
    _, group, version, *rest = parts
    namespace, (resource, name, subresource) = _resource(rest)
    return ResourceAttributes(
        verb=_verb(method, watch, named=bool(name)),
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        name=name or _name_in(field),
        subresource=subresource,
    )


def _resource(rest: list[str]) -> tuple[str, tuple[str, str, str]]:
    """Split what follows the version into a namespace and resource, name, subresource."""
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
    """Say whether a query parameter is set, as Kubernetes reads a boolean: only absence, ``false`` and ``0`` are no."""
    return value is not None and value.lower() not in {"false", "0"}


def _name_in(field: str) -> str:
    return next((field.removeprefix(prefix) for prefix in _NAME_FIELDS if field.startswith(prefix)), "")

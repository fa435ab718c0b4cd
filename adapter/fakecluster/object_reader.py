"""Get and list requests: selectors, and paged lists that are consistent across pages."""

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapter.fakecluster import api_errors, scale
from adapter.fakecluster.kinds import Json, Kind, ResourcePath
from adapter.fakecluster.storage import Storage
from autoscaler.values.selector import SelectorError, parse

_METADATA_FIELDS: Final = frozenset({"metadata.name", "metadata.namespace"})
_INVOLVED_OBJECT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS: Final = frozenset({"reason", "type", "source", *(f"involvedObject.{name}" for name in _INVOLVED_OBJECT)})


@dataclass(frozen=True)
class FieldRequirement:
    """A requirement of a field selector: the field has the value or, if negated, does not have it."""

    field: str
    value: str
    negated: bool

    def matches(self, content: Json) -> bool:
        found: Any = content
        for key in ("source", "component") if self.field == "source" else self.field.split("."):
            found = found.get(key) or {}
        return (str(found or "") == self.value) != self.negated


class Selection:
    """The namespace, field selector and label selector of a list or watch."""

    def __init__(self, path: ResourcePath, query: Mapping[str, str]) -> None:
        self._namespace = path.namespace
        self._fields = tuple(_parse_field_selector(path.kind, query.get("fieldSelector", "")))
        try:
            self._labels = parse(query.get("labelSelector", ""))
        except SelectorError as error:
            raise api_errors.ApiError(400, "BadRequest", f"unable to parse requirement: {error}") from error

    def matches(self, content: Json | None) -> bool:
        if content is None:
            return False
        metadata = content["metadata"]
        if self._namespace and metadata.get("namespace") != self._namespace:
            return False
        if not all(requirement.matches(content) for requirement in self._fields):
            return False
        return self._labels.matches(metadata.get("labels") or {})


class ObjectReader:
    """Serves get and list requests from the storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._pages: dict[str, tuple[int, list[Json]]] = {}
        """The remaining items of paged lists, by continue token."""

    def get(self, path: ResourcePath) -> Json:
        content = self._storage.get(path.kind.resource, path.key)
        if content is None:
            raise api_errors.not_found(path.kind, path.name)
        return scale.show(path.kind, content) if path.subresource == "scale" else as_version(path.kind, content)

    def list(self, path: ResourcePath, query: Mapping[str, str]) -> Json:
        """Return a collection, or the next page of one."""
        kind, token = path.kind, query.get("continue", "")
        if token:
            if token not in self._pages:
                message = "The provided continue parameter is too old to display a consistent list result."
                raise api_errors.ApiError(410, "Expired", message)
            version, items = self._pages.pop(token)
        else:
            selection = Selection(path, query)
            version = self._storage.version
            items = [as_version(kind, one) for one in self._storage.list(kind.resource) if selection.matches(one)]
        size = int(query.get("limit") or 0) or len(items)
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if len(items) > size:
            metadata |= {"continue": uuid.uuid4().hex, "remainingItemCount": len(items) - size}
            self._pages[metadata["continue"]] = version, items[size:]
        identity = {"apiVersion": kind.api_version, "kind": f"{kind.kind}List"}
        return {**identity, "metadata": metadata, "items": items[:size]}

    def expire_pages(self) -> None:
        self._pages.clear()


def as_version(kind: Kind, content: Json) -> Json:
    """Return an object with the apiVersion of the request."""
    return content if content.get("apiVersion") == kind.api_version else {**content, "apiVersion": kind.api_version}


def _parse_field_selector(kind: Kind, text: str) -> Iterator[FieldRequirement]:
    known = _METADATA_FIELDS | _EVENT_FIELDS if kind.kind == "Event" else _METADATA_FIELDS
    for requirement in filter(None, text.split(",")):
        field, *rest = re.split(r"(!=|==?)", requirement, maxsplit=1)
        if not rest:
            message = f"invalid selector: '{text}'; can't understand '{requirement}'"
            raise api_errors.ApiError(400, "BadRequest", message)
        if field not in known:
            raise api_errors.ApiError(400, "BadRequest", f"field label not supported: {field}")
        yield FieldRequirement(field, rest[1], negated=rest[0] == "!=")

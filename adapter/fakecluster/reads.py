"""Reading one object, or many: selected, in pages that are all of one moment."""

import uuid
from collections.abc import Mapping
from typing import Any

from adapter.fakecluster import api_errors, scale
from adapter.fakecluster.kinds import Json, Kind
from adapter.fakecluster.resource_path import Place
from adapter.fakecluster.storage import Shelf
from autoscaler.values.selector import Selector, SelectorError, parse


class Selection:
    """Which objects of a collection a list or a watch is about."""

    def __init__(self, place: Place, query: Mapping[str, str]) -> None:
        self._namespace = place.namespace
        self._fields = _fields(query.get("fieldSelector", ""))
        self._labels = _labels(query.get("labelSelector", ""))

    def has(self, content: Json | None) -> bool:
        """Say whether an object belongs to it."""
        if content is None:
            return False
        metadata = content["metadata"]
        if self._namespace and metadata.get("namespace") != self._namespace:
            return False
        if any(str(metadata.get(field, "")) != value for field, value in self._fields):
            return False
        return self._labels.matches(metadata.get("labels") or {})


class Reading:
    """Gets and lists."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._pages: dict[str, tuple[int, list[Json]]] = {}
        """What is still to come of lists that are being turned, by their continue tokens."""

    def get(self, place: Place) -> Json:
        """Read an object, or its scale."""
        found = self._shelf.get(place.kind.resource, place.key)
        if found is None:
            raise api_errors.not_found(place.kind, place.name)
        return scale.show(place.kind, found) if place.subresource == "scale" else served(place.kind, found)

    def list(self, place: Place, query: Mapping[str, str]) -> Json:
        """Read a collection, or the next page of one."""
        token = query.get("continue", "")
        if token:
            if token not in self._pages:
                raise api_errors.continue_too_old()
            version, items = self._pages.pop(token)
        else:
            selection = Selection(place, query)
            version = self._shelf.version
            items = [served(place.kind, one) for one in self._shelf.all(place.kind.resource) if selection.has(one)]
        size = int(query.get("limit") or 0) or len(items)
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if len(items) > size:
            metadata |= {"continue": uuid.uuid4().hex, "remainingItemCount": len(items) - size}
            self._pages[metadata["continue"]] = version, items[size:]
        kind = place.kind
        return {
            "apiVersion": kind.api_version,
            "kind": f"{kind.kind}List",
            "metadata": metadata,
            "items": items[:size],
        }

    def forget_pages(self) -> None:
        """Let no list be turned any further."""
        self._pages.clear()


def served(kind: Kind, content: Json) -> Json:
    """Show an object in the version in which it was asked for."""
    return content if content.get("apiVersion") == kind.api_version else {**content, "apiVersion": kind.api_version}


def _fields(text: str) -> list[tuple[str, str]]:
    chosen = []
    for one in filter(None, text.split(",")):
        field, _, value = one.replace("==", "=").partition("=")
        if field not in {"metadata.name", "metadata.namespace"}:
            raise api_errors.Refused(400, "BadRequest", f"field label not supported: {field}")
        chosen.append((field.removeprefix("metadata."), value))
    return chosen


def _labels(text: str) -> Selector:
    try:
        return parse(text)
    except SelectorError as error:
        raise api_errors.Refused(400, "BadRequest", f"unable to parse requirement: {error}") from error

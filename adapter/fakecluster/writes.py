"""What becomes of an object that somebody sends: identity, versions, generations, subresources, merge patches."""

import copy
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from adapter.fakecluster import api_errors, scale, schema
from adapter.fakecluster.kinds import DEFINITIONS, Json, Kind, Kinds
from adapter.fakecluster.resource_path import Place
from adapter.fakecluster.storage import Shelf
from autoscaler.wire import print_time

_OTHER_NAMESPACE: Final = "the namespace of the provided object does not match the namespace sent on the request"
_OURS: Final = ("uid", "creationTimestamp", "generation")
"""What only the server decides."""


class Writing:
    """Creates, replaces, patches and deletes, as the API server does."""

    def __init__(self, shelf: Shelf, kinds: Kinds, clock: Callable[[], datetime]) -> None:
        self._shelf = shelf
        self._kinds = kinds
        self._clock = clock

    def create(self, place: Place, body: Json) -> Json:
        """Create an object in a collection."""
        kind, metadata = place.kind, body.setdefault("metadata", {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
        name = metadata.get("name", "")
        if not name:
            raise api_errors.invalid(kind, "", ["metadata.name: Required value: name or generateName is required"])
        if metadata.get("namespace", place.namespace) != place.namespace:
            raise api_errors.Refused(400, "BadRequest", _OTHER_NAMESPACE)
        if self._shelf.get(kind.resource, (place.namespace, name)) is not None:
            raise api_errors.already_exists(kind, name)
        if metadata.get("resourceVersion"):
            raise api_errors.Refused(500, "InternalError", "resourceVersion should not be set on objects to be created")
        if kind.has_status and kind.resource != DEFINITIONS and kind.plural != "pods":
            body.pop("status", None)
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": print_time(self._clock())}
        if kind.counts_changes:
            metadata["generation"] = 1
        return self._keep(Place(kind, place.namespace, name, ""), body)

    def replace(self, place: Place, body: Json) -> Json:
        """Write a whole object, its status, or its scale."""
        found = self._shelf.get(place.kind.resource, place.key)
        if found is None:
            if place.kind.created_by_put and not place.subresource:
                return self._create_by_put(place, body)
            raise api_errors.not_found(place.kind, place.name)
        self._check(place, body, found)
        sent = body.get("metadata", {})
        if place.kind.is_custom and not sent.get("resourceVersion") and place.subresource != "scale":
            problem = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            raise api_errors.invalid(place.kind, place.name, [problem])
        return self._update(place, found, body)

    def _create_by_put(self, place: Place, body: Json) -> Json:
        """Create what somebody wanted to replace, unless he meant a particular one; the version he knew is ignored."""
        metadata = body.setdefault("metadata", {})
        if metadata.get("uid"):
            raise api_errors.another_uid(place.kind, place.name, metadata["uid"], "")
        metadata.pop("resourceVersion", None)
        return self.create(place, body)

    def patch(self, place: Place, patch: Json) -> Json:
        """Merge a patch into an object, its status, or its scale."""
        found = self._shelf.get(place.kind.resource, place.key)
        if found is None:
            raise api_errors.not_found(place.kind, place.name)
        sent, known = (patch.get("metadata") or {}).get("uid"), found["metadata"].get("uid")
        if sent and sent != known:
            raise api_errors.invalid(
                place.kind, place.name, [f'metadata.uid: Invalid value: "{sent}": field is immutable']
            )
        self._check(place, patch, found)
        shown = scale.show(place.kind, found) if place.subresource == "scale" else found
        return self._update(place, found, merged(shown, patch))

    def delete(self, place: Place) -> Json:
        """Delete an object, and with a definition everything that it defined."""
        last = self._shelf.remove(place.kind.resource, place.key)
        if last is None:
            raise api_errors.not_found(place.kind, place.name)
        if place.kind.resource == DEFINITIONS:
            defined = (last["spec"]["group"], last["spec"]["names"]["plural"])
            for thing in self._shelf.all(defined):
                metadata = thing["metadata"]
                self._shelf.remove(defined, (metadata.get("namespace", ""), metadata["name"]))
            self._kinds.undefine(last)
        return last

    def _check(self, place: Place, body: Json, found: Json) -> None:
        sent, known = body.get("metadata") or {}, found["metadata"]
        if sent.get("uid") and sent["uid"] != known.get("uid"):
            raise api_errors.another_uid(place.kind, place.name, sent["uid"], known.get("uid", ""))
        if sent.get("resourceVersion") and sent["resourceVersion"] != known["resourceVersion"]:
            raise api_errors.modified(place.kind, place.name)

    def _update(self, place: Place, found: Json, sent: Json) -> Json:
        kind = place.kind
        if place.subresource == "scale":
            kept = self._keep(place, _counted(kind, scale.apply(kind, found, sent), found))
            return scale.show(kind, kept)
        if place.subresource == "status":
            return self._keep(place, {**copy.deepcopy(found), "status": sent.get("status") or {}})
        new = copy.deepcopy(sent)
        kept_metadata = {key: found["metadata"][key] for key in _OURS if key in found["metadata"]}
        new["metadata"] = {**new.get("metadata", {}), **kept_metadata}
        if kind.has_status:
            new.pop("status", None)
            new |= {"status": found["status"]} if "status" in found else {}
        return self._keep(place, _counted(kind, new, found))

    def _keep(self, place: Place, content: Json) -> Json:
        kind = place.kind
        metadata = content["metadata"]
        metadata["name"] = place.name
        if kind.namespaced:
            metadata["namespace"] = place.namespace
        content |= {"apiVersion": kind.api_version, "kind": kind.kind}
        _default(kind, content)
        problems = list(schema.problems(kind.schema, content)) if kind.schema is not None else []
        if problems:
            raise api_errors.invalid(kind, place.name, problems)
        if kind.resource == DEFINITIONS:
            self._kinds.define(content)
            established = [{"type": name, "status": "True"} for name in ("NamesAccepted", "Established")]
            content["status"] = {"conditions": established, "storedVersions": ["v1"]}
        return self._shelf.put(kind.resource, place.key, content)


def merged(into: Any, patch: Any) -> Any:  # noqa: ANN401 - JSON
    """Merge a patch: what it does not name stays, what it calls null goes, lists are taken whole."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(into) if isinstance(into, dict) else {}
    for key, value in patch.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = merged(kept.get(key), value)
    return kept


def _default(kind: Kind, content: Json) -> None:
    if kind.schema is not None:
        schema.prune_and_default(kind.schema, content)
    elif kind.group == "apps" and kind.scale is not None:
        content.setdefault("spec", {}).setdefault("replicas", 1)
        content.setdefault("status", {})


def _counted(kind: Kind, new: Json, old: Json) -> Json:
    """Let the generation grow where something other than metadata and status changed."""
    if kind.counts_changes and _asked(new) != _asked(old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
    return new


def _asked(content: Json) -> Json:
    return {key: value for key, value in content.items() if key not in {"metadata", "status", "apiVersion", "kind"}}

"""Create, update, patch and delete requests: identity, resource versions, generations, subresources, merge patches."""

import copy
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from adapter.decoding import structural_schema
from adapter.fakecluster import api_errors, scale
from adapter.fakecluster.kinds import CRD_RESOURCE, Json, Kind, Kinds, ResourcePath
from adapter.fakecluster.storage import Storage
from autoscaler.values.timestamps import format_rfc3339

_NAMESPACE_MISMATCH: Final = "the namespace of the provided object does not match the namespace sent on the request"
_IMMUTABLE_FIELDS: Final = ("immutable", "data", "binaryData")
_SERVER_FIELDS: Final = ("uid", "creationTimestamp", "generation")
"""Metadata that only the server sets."""


class ObjectWriter:
    """Applies write requests to the storage, as kube-apiserver does."""

    def __init__(self, storage: Storage, kinds: Kinds, clock: Callable[[], datetime]) -> None:
        self._storage = storage
        self._kinds = kinds
        self._clock = clock

    def create(self, path: ResourcePath, body: Json) -> Json:
        kind, metadata = path.kind, body.setdefault("metadata", {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
        name = metadata.get("name", "")
        if not name:
            raise api_errors.invalid(kind, "", ["metadata.name: Required value: name or generateName is required"])
        if metadata.get("namespace", path.namespace) != path.namespace:
            raise api_errors.ApiError(400, "BadRequest", _NAMESPACE_MISMATCH)
        if self._storage.get(kind.resource, (path.namespace, name)) is not None:
            raise api_errors.ApiError(409, "AlreadyExists", f'{kind.full_name} "{name}" already exists')
        if metadata.get("resourceVersion"):
            message = "resourceVersion should not be set on objects to be created"
            raise api_errors.ApiError(500, "InternalError", message)
        if kind.has_status and kind.resource != CRD_RESOURCE and kind.plural != "pods":
            body.pop("status", None)
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": format_rfc3339(self._clock())}
        if kind.has_generation:
            metadata["generation"] = 1
        return self._store(ResourcePath(kind, path.namespace, name), body)

    def replace(self, path: ResourcePath, body: Json) -> Json:
        stored = self._storage.get(path.kind.resource, path.key)
        metadata = body.setdefault("metadata", {})
        if stored is None:
            if not path.kind.allow_create_on_update or path.subresource:
                raise api_errors.not_found(path.kind, path.name)
            if metadata.get("uid"):
                raise api_errors.uid_mismatch(path.kind, path.name, metadata["uid"], "")
            metadata.pop("resourceVersion", None)
            return self.create(path, body)
        self._check_preconditions(path, body, stored)
        if path.kind.is_custom and not metadata.get("resourceVersion") and path.subresource != "scale":
            problem = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            raise api_errors.invalid(path.kind, path.name, [problem])
        return self._update(path, stored, body)

    def patch(self, path: ResourcePath, patch: Json) -> Json:
        stored = self._storage.get(path.kind.resource, path.key)
        if stored is None:
            raise api_errors.not_found(path.kind, path.name)
        uid = (patch.get("metadata") or {}).get("uid")
        if uid and uid != stored["metadata"].get("uid"):
            problem = f'metadata.uid: Invalid value: "{uid}": field is immutable'
            raise api_errors.invalid(path.kind, path.name, [problem])
        self._check_preconditions(path, patch, stored)
        current = scale.show(path.kind, stored) if path.subresource == "scale" else stored
        return self._update(path, stored, merge_patch(current, patch))

    def delete(self, path: ResourcePath) -> Json:
        """Delete an object; deleting a CustomResourceDefinition deletes all objects of its kind."""
        last = self._storage.remove(path.kind.resource, path.key)
        if last is None:
            raise api_errors.not_found(path.kind, path.name)
        if path.kind.resource == CRD_RESOURCE:
            resource = (last["spec"]["group"], last["spec"]["names"]["plural"])
            for content in self._storage.list(resource):
                metadata = content["metadata"]
                self._storage.remove(resource, (metadata.get("namespace", ""), metadata["name"]))
            self._kinds.remove_crd(last)
        return last

    def _check_preconditions(self, path: ResourcePath, body: Json, stored: Json) -> None:
        sent, known = body.get("metadata") or {}, stored["metadata"]
        if sent.get("uid") and sent["uid"] != known.get("uid"):
            raise api_errors.uid_mismatch(path.kind, path.name, sent["uid"], known.get("uid", ""))
        if sent.get("resourceVersion") and sent["resourceVersion"] != known["resourceVersion"]:
            raise api_errors.conflict(path.kind, path.name)

    def _update(self, path: ResourcePath, stored: Json, sent: Json) -> Json:
        kind = path.kind
        if path.subresource == "scale":
            scaled = self._store(path, _with_generation(kind, scale.apply(kind, stored, sent), stored))
            return scale.show(kind, scaled)
        if path.subresource == "status":
            return self._store(path, {**copy.deepcopy(stored), "status": sent.get("status") or {}})
        if stored.get("immutable") and any(sent.get(field) != stored.get(field) for field in _IMMUTABLE_FIELDS):
            raise api_errors.invalid(kind, path.name, ["data: Forbidden: field is immutable when `immutable` is set"])
        new = copy.deepcopy(sent)
        server_fields = {key: stored["metadata"][key] for key in _SERVER_FIELDS if key in stored["metadata"]}
        new["metadata"] = {**new.get("metadata", {}), **server_fields}
        if kind.has_status:
            new.pop("status", None)
            new |= {"status": stored["status"]} if "status" in stored else {}
        return self._store(path, _with_generation(kind, new, stored))

    def _store(self, path: ResourcePath, content: Json) -> Json:
        kind = path.kind
        metadata = content["metadata"]
        metadata["name"] = path.name
        if kind.namespaced:
            metadata["namespace"] = path.namespace
        content |= {"apiVersion": kind.api_version, "kind": kind.kind}
        if kind.schema is not None:
            structural_schema.prune_and_default(kind.schema, content)
            if problems := list(structural_schema.problems(kind.schema, content)):
                raise api_errors.invalid(kind, path.name, list(map(str, problems)))
        elif kind.group == "apps" and kind.scale is not None:
            content.setdefault("spec", {}).setdefault("replicas", 1)
            content.setdefault("status", {})
        if kind.resource == CRD_RESOURCE:
            self._kinds.add_crd(content)
            established = [{"type": name, "status": "True"} for name in ("NamesAccepted", "Established")]
            content["status"] = {"conditions": established, "storedVersions": ["v1"]}
        return self._storage.put(kind.resource, path.key, content)


def merge_patch(target: Any, patch: Any) -> Any:  # noqa: ANN401 - JSON
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _with_generation(kind: Kind, new: Json, old: Json) -> Json:
    """Increment the generation if anything but metadata and status changed."""
    if kind.has_generation and _spec_fields(new) != _spec_fields(old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
    return new


def _spec_fields(content: Json) -> Json:
    return {key: value for key, value in content.items() if key not in {"metadata", "status", "apiVersion", "kind"}}

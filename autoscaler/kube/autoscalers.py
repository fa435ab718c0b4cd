"""Informers for PodAutoscalers and HorizontalPodAutoscalers, and the writer of PodAutoscaler status.

A status is written to the status subresource by PUT, with the resourceVersion it was computed from. A concurrent edit
of the object therefore causes a Conflict instead of being overwritten. No patch has to be computed, and fields that
could not be decoded are replaced. The spec is not sent: a write of this subresource does not change it.

Only what the controller uses is stored: no labels, no annotations but one, and of an HPA only the target. Equal texts
of different autoscalers, such as the messages of conditions, are stored once.
"""

from functools import lru_cache
from typing import Any, Final

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.informer import Informer
from autoscaler.kube.partial_informer import Accepts, PartialInformer, accept_all
from autoscaler.kube.paths import api_path
from autoscaler.kube.watch import ListWatch
from autoscaler.types.autoscaler import PAUSED_ANNOTATION, Autoscaler, Metadata
from autoscaler.types.status import Status
from autoscaler.wire import decode_autoscaler, decode_stored, encode

_API_VERSION: Final = "steadyscale.dev/v1beta1"
_POD_AUTOSCALERS: Final = f"/apis/{_API_VERSION}"
_METADATA_FIELDS: Final = ("name", "namespace", "generation", "resourceVersion", "uid")
_HISTORY: Final = "controllerState"
_MAX_SHARED_LENGTH: Final = 256
_HORIZONTAL_POD_AUTOSCALERS: Final = "/apis/autoscaling/v2"


def podautoscaler_informer(client: KubeClient, accepts: Accepts = accept_all) -> PartialInformer[Autoscaler]:
    return PartialInformer(client, ListWatch(f"{_POD_AUTOSCALERS}/podautoscalers"), trimmed_autoscaler, accepts)


def hpa_informer(client: KubeClient, accepts: Accepts = accept_all) -> PartialInformer[Autoscaler]:
    source = ListWatch(f"{_HORIZONTAL_POD_AUTOSCALERS}/horizontalpodautoscalers")
    return PartialInformer(client, source, _trimmed_hpa, accepts)


def trimmed_autoscaler(content: Json) -> Autoscaler:
    """Decode a PodAutoscaler without the metadata that is not used, and with texts that it shares with others."""
    metadata = content["metadata"]
    annotations = metadata.get("annotations")
    paused = annotations.get(PAUSED_ANNOTATION) if isinstance(annotations, dict) else None
    kept = {field: metadata[field] for field in _METADATA_FIELDS if field in metadata}
    if paused is not None:
        kept["annotations"] = {PAUSED_ANNOTATION: paused}
    rest = {field: _with_shared_texts(content[field]) for field in ("spec", "status") if field in content}
    return decode_stored({"metadata": kept, **rest})


def _trimmed_hpa(content: Json) -> Autoscaler:
    """Decode the name and the target of an HPA, to detect conflicts."""
    metadata, spec = content["metadata"], content.get("spec")
    kept = {field: metadata[field] for field in ("name", "namespace") if field in metadata}
    target = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
    return decode_autoscaler({"metadata": kept, "spec": {"scaleTargetRef": _with_shared_texts(target)}})


def _with_shared_texts(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a JSON value whose texts are those of equal texts before, except the history, which is always unique."""
    if isinstance(value, dict):
        return {key: item if key == _HISTORY else _with_shared_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_shared_texts(item) for item in value]
    return _shared_text(value) if isinstance(value, str) and len(value) <= _MAX_SHARED_LENGTH else value


@lru_cache(maxsize=8192)
def _shared_text(text: str) -> str:
    return text


class StatusWriter:
    """Writes the status of PodAutoscalers."""

    def __init__(self, client: KubeClient, informer: Informer[Autoscaler]) -> None:
        self._client = client
        self._informer = informer

    async def write(self, autoscaler: Autoscaler, status: Status) -> Autoscaler:
        """Replace the status of ``autoscaler`` and return the updated object.

        Raises a KubeError: Conflict if the object has changed since it was read, NotFound if it was deleted.
        """
        metadata = autoscaler.metadata
        path = api_path("namespaces", metadata.namespace, "podautoscalers", metadata.name, "status")
        with self._informer.own_write(f"{metadata.namespace}/{metadata.name}"):
            response = await self._client.replace(f"{_POD_AUTOSCALERS}{path}", status_body(metadata, status))
            written = self._informer.apply_response(response)
        return autoscaler if written is None else written


def status_body(metadata: Metadata, status: Status) -> Json:
    """Return the body of a status write."""
    identity = {
        "name": metadata.name,
        "namespace": metadata.namespace,
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
    }
    return {"apiVersion": _API_VERSION, "kind": "PodAutoscaler", "metadata": identity, "status": encode(status)}

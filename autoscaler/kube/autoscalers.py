"""Informers for PodAutoscalers and HorizontalPodAutoscalers, and the writer of PodAutoscaler status.

A status is written to the status subresource as a merge patch against the previous status, with the resourceVersion it
was computed from. A concurrent edit of the object therefore causes a Conflict instead of being overwritten.
"""

from typing import Any, Final

import msgspec

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.informer import Informer
from autoscaler.kube.partial_informer import Accepts, PartialInformer, accept_all
from autoscaler.kube.paths import api_path
from autoscaler.kube.watch import ListWatch
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.status import Status
from autoscaler.wire import decode_autoscaler, decode_stored, encode, has_unreadable_fields

_POD_AUTOSCALERS: Final = "/apis/steadyscale.dev/v1beta1"
_HORIZONTAL_POD_AUTOSCALERS: Final = "/apis/autoscaling/v2"


def podautoscaler_informer(client: KubeClient, accepts: Accepts = accept_all) -> PartialInformer[Autoscaler]:
    return PartialInformer(client, ListWatch(f"{_POD_AUTOSCALERS}/podautoscalers"), decode_stored, accepts)


def hpa_informer(client: KubeClient, accepts: Accepts = accept_all) -> PartialInformer[Autoscaler]:
    source = ListWatch(f"{_HORIZONTAL_POD_AUTOSCALERS}/horizontalpodautoscalers")
    return PartialInformer(client, source, decode_autoscaler, accepts)


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
        below = api_path("namespaces", metadata.namespace, "podautoscalers", metadata.name, "status")
        path = f"{_POD_AUTOSCALERS}{below}"
        patch = status_patch(autoscaler.status, status)
        body: Json = {"metadata": {"resourceVersion": metadata.resource_version}, "status": patch}
        with self._informer.own_write(f"{metadata.namespace}/{metadata.name}"):
            written = self._informer.apply_response(await self._client.patch(path, body))
        return autoscaler if written is None else written


def status_patch(before: Status, after: Status) -> Json:
    """Return the merge patch of a status; it also removes stored fields that could not be decoded."""
    if has_unreadable_fields(before):  # by this process, or by a stricter definition: any field may be affected
        return dict.fromkeys(field.encode_name for field in msgspec.structs.fields(Status)) | encode(after)
    return merge_patch(encode(before), encode(after))


def merge_patch(before: Json, after: Json) -> Json:
    """Return the JSON merge patch that turns ``before`` into ``after``; removed keys are null, lists are replaced."""
    patch: dict[str, Any] = {key: None for key, value in before.items() if value is not None and after.get(key) is None}
    for key, value in after.items():
        known = before.get(key)
        if value is None or value == known:
            continue
        patch[key] = merge_patch(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return patch

"""Informers for PodAutoscalers and HorizontalPodAutoscalers, and the writer of PodAutoscaler status.

A status is written to the status subresource by PUT, with the resourceVersion it was computed from. A concurrent edit
of the object therefore causes a Conflict instead of being overwritten. A merge patch costs the API server more, because
it encodes the stored object, applies the patch and decodes the result (``bench.status_writes``). The spec is not sent:
a write of this subresource does not change it.
"""

from typing import Final

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.informer import Informer
from autoscaler.kube.partial_informer import Accepts, PartialInformer, accept_all
from autoscaler.kube.paths import api_path
from autoscaler.kube.watch import ListWatch
from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.status import Status
from autoscaler.wire import decode_autoscaler, decode_stored, encode

_API_VERSION: Final = "steadyscale.dev/v1beta1"
_POD_AUTOSCALERS: Final = f"/apis/{_API_VERSION}"
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

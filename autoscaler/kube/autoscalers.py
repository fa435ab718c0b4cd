"""The autoscalers of the cluster, watched and decoded, and the one way to write what they say of themselves.

A status is written as the difference to the last one, to the status subresource, and only over the version it was
computed from: who edits an autoscaler at the same moment loses nothing, and is seen first.
"""

import logging
from typing import Any, Final

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.store import Store
from autoscaler.kube.watch import Watched
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.status import Status
from autoscaler.wire import DecodeError, decode_autoscaler, encode_status

log = logging.getLogger(__name__)

POD_AUTOSCALERS: Final = "/apis/steadyscale.dev/v1beta1"
POD_AUTOSCALER: Final = "PodAutoscaler"
NATIVE: Final = "/apis/autoscaling/v2"
NATIVE_KIND: Final = "HorizontalPodAutoscaler"


def watch_podautoscalers(client: KubeClient) -> Store[Autoscaler]:
    """Make the store of all PodAutoscalers; it wants to be run."""
    return Store(client, Watched(f"{POD_AUTOSCALERS}/podautoscalers"), _decoded)


def watch_native(client: KubeClient) -> Store[Autoscaler]:
    """Make the store of all HorizontalPodAutoscalers; it wants to be run."""
    return Store(client, Watched(f"{NATIVE}/horizontalpodautoscalers"), _decoded)


class StatusWriter:
    """Writes what a PodAutoscaler says of itself."""

    def __init__(self, client: KubeClient, store: Store[Autoscaler]) -> None:
        self._client = client
        self._store = store

    async def write(self, autoscaler: Autoscaler, status: Status) -> Autoscaler:
        """Write a status over that of `autoscaler`, and give what the server made of it.

        Raises a KubeError: Conflict where the object has changed since, NotFound where it is gone.
        """
        metadata = autoscaler.metadata
        path = f"{POD_AUTOSCALERS}/namespaces/{metadata.namespace}/podautoscalers/{metadata.name}/status"
        difference = merge_patch(encode_status(autoscaler.status), encode_status(status))
        body: Json = {"metadata": {"resourceVersion": metadata.resource_version}, "status": difference}
        with self._store.writing(f"{metadata.namespace}/{metadata.name}"):
            written = self._store.learn(await self._client.patch(path, body))
        return autoscaler if written is None else written


def merge_patch(before: Json, after: Json) -> Json:
    """Say what turns one JSON object into another, as a merge patch: null for what goes, lists as a whole."""
    patch: dict[str, Any] = {key: None for key, value in before.items() if value is not None and after.get(key) is None}
    for key, value in after.items():
        known = before.get(key)
        if value is None or value == known:
            continue
        patch[key] = merge_patch(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return patch


def _decoded(content: Json) -> Autoscaler | None:
    """Decode an autoscaler; one that cannot be read is as good as absent, and is complained of."""
    try:
        return decode_autoscaler(content)
    except DecodeError as error:
        name = f"{content['metadata'].get('namespace')}/{content['metadata']['name']}"
        log.warning("an autoscaler cannot be read", extra={"autoscaler": name, "error": str(error)})
        return None

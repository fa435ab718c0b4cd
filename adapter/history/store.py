"""The store: one ConfigMap per segment, in the namespace of Steadyscale.

The name of a segment is unique to the term of one process, so that two processes never write the same object. A sealed
segment is immutable, so that a delayed request cannot replace it by an older version.
"""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapter.history.segments import SegmentInfo
from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import AlreadyExists, MalformedResponse, NotFound
from autoscaler.kube.paths import api_path

LABEL: Final = "steadyscale.dev/decision-history"
INFO: Final = "steadyscale.dev/segment"
_METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_DATA: Final = "records"
_PAGE_SIZE: Final = "500"


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Item(msgspec.Struct):
    metadata: _Metadata


class _ListMetadata(msgspec.Struct, rename="camel"):
    continue_token: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct):
    items: list[_Item] | None = None
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)


@dataclass(frozen=True, slots=True)
class SegmentStore:
    """Reads and writes segments; every method raises a KubeError if the request fails."""

    kube: KubeClient
    namespace: str

    async def list(self) -> tuple[SegmentInfo, ...]:
        """Return the information about all segments, without their records."""
        query, found = {"labelSelector": f"{LABEL}=segment", "limit": _PAGE_SIZE}, list[SegmentInfo]()
        while True:
            body = await self.kube.get_bytes(self._collection, query, accept=_METADATA_ONLY)
            try:
                page = msgspec.json.decode(body, type=_List)
            except msgspec.MsgspecError as error:
                raise MalformedResponse(f"malformed list of segments: {error}") from error
            found += [info for item in page.items or () if (info := _info_of(item)) is not None]
            if not page.metadata.continue_token:
                return tuple(found)
            query["continue"] = page.metadata.continue_token

    async def fetch(self, name: str) -> bytes:
        """Return the compressed records of a segment."""
        content = await self.kube.get(f"{self._collection}{api_path(name)}")
        try:
            return b64decode(content["binaryData"][_DATA], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise MalformedResponse(f"ConfigMap {name} contains no segment") from error

    async def write(self, segment: SegmentInfo, compressed: bytes, *, exists: bool) -> None:
        """Create or replace a segment."""
        body = _config_map(segment, compressed)
        path = f"{self._collection}{api_path(segment.name)}"
        if exists:
            try:
                await self.kube.replace(path, body)
            except NotFound:  # deleted by another client
                await self.kube.create(self._collection, body)
            return
        try:
            await self.kube.create(self._collection, body)
        except AlreadyExists:  # an earlier request was processed although there was no response in time
            await self.kube.replace(path, body)

    async def delete(self, name: str) -> None:
        try:
            await self.kube.request("DELETE", f"{self._collection}{api_path(name)}")
        except NotFound:
            return

    @property
    def _collection(self) -> str:
        return api_path("api", "v1", "namespaces", self.namespace, "configmaps")


def _config_map(segment: SegmentInfo, compressed: bytes) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": segment.name,
            "labels": {LABEL: "segment", "app.kubernetes.io/managed-by": "steadyscale"},
            "annotations": {INFO: msgspec.json.encode(segment).decode()},
        },
        "binaryData": {_DATA: b64encode(compressed).decode()},
        "immutable": segment.is_sealed,
    }


def _info_of(item: _Item) -> SegmentInfo | None:
    try:
        return msgspec.json.decode((item.metadata.annotations or {}).get(INFO, ""), type=SegmentInfo)
    except msgspec.MsgspecError:
        return None  # not written by this version

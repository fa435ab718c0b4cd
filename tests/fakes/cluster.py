"""The in-memory cluster of the tests: direct access to objects, fault injection, and the metrics APIs."""

import copy
from collections.abc import Callable
from datetime import datetime

from adapter.fakecluster import cluster
from adapter.fakecluster.api_errors import ApiError, unknown_resource
from adapter.fakecluster.kinds import Json, ResourcePath
from adapter.fakecluster.server import ReceivedRequest
from tests.fakes.fault_injection import FaultInjection
from tests.fakes.metrics_apis import Metrics


class Cluster(cluster.Cluster):
    """The API server. The methods act on objects directly, without HTTP. Open it with `serving`."""

    def __init__(self, clock: Callable[[], datetime] = cluster.loop_clock) -> None:
        super().__init__(clock)
        self.faults = FaultInjection()
        self.metrics = Metrics(self.storage, clock)
        self.requests: list[ReceivedRequest] = []
        """Every received request, oldest first; tests may clear it."""

    async def on_request(self, request: ReceivedRequest, path: ResourcePath | None) -> None:
        self.requests.append(request)
        resource = request.path
        if path is not None:
            resource = f"{path.kind.plural}/{path.subresource}" if path.subresource else path.kind.plural
        await self.faults.inject(request.verb, request.path, resource)

    def aggregated(self, path: str, query: dict[str, str]) -> Json | None:
        return self.metrics.handle(path, query)

    def aggregated_groups(self) -> dict[str, tuple[str, ...]]:
        return self.metrics.groups()

    def get(self, path: str) -> Json | None:
        """Return an object or its scale; None if it does not exist."""
        try:
            return copy.deepcopy(self.reader.get(self._parse(path)))
        except ApiError:
            return None

    def create(self, collection: str, body: Json) -> Json:
        return copy.deepcopy(self.writer.create(self._parse(collection), copy.deepcopy(body)))

    def patch(self, path: str, patch: Json) -> Json:
        return copy.deepcopy(self.writer.patch(self._parse(path), copy.deepcopy(patch)))

    def put(self, path: str, content: Json) -> Json:
        parsed, body = self._parse(path), copy.deepcopy(content)
        metadata = body.setdefault("metadata", {})
        stored = self.storage.get(parsed.kind.resource, parsed.key)
        if stored is None:
            metadata["name"] = parsed.name
            return self.writer.create(parsed, body)
        metadata["resourceVersion"] = stored["metadata"]["resourceVersion"]
        return self.writer.replace(parsed, body)

    def delete(self, path: str) -> None:
        self.writer.delete(self._parse(path))

    def install_crd(self, crd: Json) -> None:
        self.put(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}", crd)

    def list(self, collection: str) -> list[Json]:
        return copy.deepcopy(self.reader.list(self._parse(collection), {})["items"])

    def close_watches(self) -> None:
        """End every watch; clients can resume from their last version."""
        self.storage.close_watches()

    def expire_watches(self) -> None:
        """End every watch and expire every version and continue token, so that clients must list again."""
        self.storage.compact()
        self.reader.expire_pages()
        self.storage.close_watches()

    def _parse(self, path: str) -> ResourcePath:
        parsed = self.kinds.parse(path)
        if parsed is None:
            raise unknown_resource()
        return parsed

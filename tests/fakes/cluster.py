"""The in-memory cluster of the tests: direct access to objects, fault injection, and the metrics APIs."""

import asyncio
import copy
from collections.abc import Callable
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Any

from aiohttp import web

from adapter.fakecluster import cluster
from adapter.fakecluster.api_errors import ApiError, unknown_resource
from adapter.fakecluster.kinds import Json, ResourcePath
from adapter.fakecluster.server import ReceivedRequest
from adapter.fakecluster.watch import watch
from tests.fakes.fault_injection import FaultInjection, LostResponse
from tests.fakes.metrics_apis import Metrics


class Cluster(cluster.Cluster):
    """The API server. The methods act on objects directly, without HTTP. Open it with `serving`."""

    def __init__(self, clock: Callable[[], datetime] = cluster.loop_clock) -> None:
        super().__init__(clock)
        self.faults = FaultInjection()
        self.metrics = Metrics(self.storage, clock)
        self.requests: list[ReceivedRequest] = []
        """Every received request, oldest first; tests may clear it."""
        self._lost_responses: dict[asyncio.Task[Any] | None, LostResponse] = {}
        """The faults of the requests that are being handled."""

    async def on_request(self, request: ReceivedRequest, path: ResourcePath | None) -> None:
        self.requests.append(request)
        resource = request.path
        if path is not None:
            resource = f"{path.kind.plural}/{path.subresource}" if path.subresource else path.kind.plural
        await self.faults.inject(request.verb, request.path, resource)
        if (lost := self.faults.take_lost_response(request.verb, request.path)) is not None:
            self._lost_responses[asyncio.current_task()] = lost
            await asyncio.sleep(lost.hold)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        response = await super().handle(request)
        lost = self._lost_responses.pop(asyncio.current_task(), None)
        if lost is not None:
            await asyncio.sleep(lost.delay)
            if lost.drop and request.transport is not None:
                request.transport.abort()
        return response

    async def _watch(self, request: web.Request, path: ResourcePath, query: dict[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        async with aclosing(watch(self.storage, path, query)) as lines:
            await response.prepare(request)
            with suppress(ConnectionResetError):  # the client disconnected
                async for line in lines:
                    await self.faults.watches_may_send.wait()
                    await response.write(line)
        return response

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

    def backup(self) -> Json:
        """Return the content of the storage, for `restore`."""
        return {"objects": copy.deepcopy(self.storage._objects), "version": self.storage.version}

    def restore(self, backup: Json) -> None:
        """Replace the content of the storage by a backup, like etcd: watches stay open and resourceVersions go back."""
        self.storage._objects, self.storage.version = copy.deepcopy(backup["objects"]), backup["version"]
        self.storage._past.clear()

    def _parse(self, path: str) -> ResourcePath:
        parsed = self.kinds.parse(path)
        if parsed is None:
            raise unknown_resource()
        return parsed

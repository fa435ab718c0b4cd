"""An in-memory Kubernetes API server that listens on loopback, for the demo and for tests.

Supported: built-in kinds and CustomResourceDefinitions; resource versions and generations; 404, 409, 410 and 422 with
the messages of kube-apiserver; merge patches; status and scale subresources; paged lists; watches with bookmarks;
discovery; TokenReview and SubjectAccessReview; the three metrics APIs; workloads whose pods follow their replicas.
Not supported: admission, CEL, server-side apply, managed fields, garbage collection. `tests/contract` runs the same
tests against this server and a real one.
"""

import asyncio
import copy
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from aiohttp import web

from adapter.fakecluster.api_errors import ApiError, unknown_resource
from adapter.fakecluster.kinds import Json, ResourcePath
from adapter.fakecluster.server import ApiServer
from adapter.fakecluster.workload_controller import WorkloadController
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import KubeConnection

_LOOPBACK: Final = "127.0.0.1"
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


def loop_clock() -> datetime:
    """Return a time that advances with the event loop's clock, which may be virtual in tests."""
    return _EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


class Cluster(ApiServer):
    """The API server on loopback. The methods act on objects directly, without HTTP. Open it with `serving`."""

    def __init__(self, clock: Callable[[], datetime] = loop_clock) -> None:
        super().__init__(clock)
        self.clock = clock
        self.workloads = WorkloadController(self.storage, self.kinds, self.writer, clock)
        self._runner: web.AppRunner | None = None
        self._port = 0

    @classmethod
    @asynccontextmanager
    async def serving(cls, clock: Callable[[], datetime] = loop_clock) -> AsyncIterator[Self]:
        cluster = cls(clock)
        await cluster.start()
        controller = asyncio.create_task(cluster.workloads.run(), name="workload controller")
        try:
            yield cluster
        finally:
            await cluster.stop()
            controller.cancel()
            with suppress(asyncio.CancelledError):
                await controller

    @property
    def connection(self) -> KubeConnection:
        """A connection without TLS and without credentials."""

        async def no_credentials() -> Mapping[str, str]:
            return {}

        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return KubeConnection(f"http://{_LOOPBACK}:{self._port}", tls, None, None, no_credentials)

    def client(self) -> AbstractAsyncContextManager[KubeClient]:
        return KubeClient.open(self.connection)

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

    async def stop(self) -> None:
        """Stop listening and close every connection; stored objects remain."""
        self.storage.close_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def start(self) -> None:
        """Listen, on the same port as before."""
        self._runner = web.AppRunner(self.application(), shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, _LOOPBACK, self._port, reuse_address=True).start()
        self._port = self._runner.addresses[0][1]

    def _parse(self, path: str) -> ResourcePath:
        parsed = self.kinds.parse(path)
        if parsed is None:
            raise unknown_resource()
        return parsed

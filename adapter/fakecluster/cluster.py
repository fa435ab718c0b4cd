"""An in-memory Kubernetes API server that listens on loopback, for the demo and for tests.

Supported: built-in kinds and CustomResourceDefinitions; resource versions and generations; 404, 409, 410 and 422 with
the messages of kube-apiserver; merge patches; status and scale subresources; paged lists; watches with bookmarks;
discovery; TokenReview and SubjectAccessReview; workloads whose pods follow their replicas. The tests add fault
injection and the metrics APIs in a subclass.
Not supported: admission, CEL, server-side apply, managed fields, garbage collection. `tests/contract` runs the same
tests against this server and a real one.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from aiohttp import web

from adapter.fakecluster.server import ApiServer
from adapter.fakecluster.workload_controller import WorkloadController
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import KubeConnection

_LOOPBACK: Final = "127.0.0.1"
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


def loop_time() -> float:
    """Return the time of the event loop in seconds, which may be virtual in tests."""
    return asyncio.get_running_loop().time()


def loop_clock() -> datetime:
    """Return a time that advances with the event loop's clock."""
    return _EPOCH + timedelta(seconds=loop_time())


class Cluster(ApiServer):
    """The API server on loopback. Open it with `serving`."""

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
        return KubeConnection(f"http://{_LOOPBACK}:{self._port}", tls, None, None, no_credentials, loop_time)

    def client(self) -> AbstractAsyncContextManager[KubeClient]:
        return KubeClient.open(self.connection)

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

"""A Kubernetes API in memory, on loopback, over real HTTP: for the demonstration, and for tests that need a cluster.

It knows: objects of built-in and of defined kinds, with versions that grow; 404, 409 and 422 in the API server's words;
merge patches; status and scale subresources; lists in pages, watches with bookmarks, versions that expire; discovery;
reviews of tokens and access; metrics; workloads whose pods follow their replicas. It does not know: admission, CEL,
server-side apply, managed fields, garbage collection. What it knows it does as the real one does; `tests/contract` runs
the same sentences on both.
"""

import asyncio
import copy
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from aiohttp import web

from adapter.fakecluster.api_errors import Refused
from adapter.fakecluster.fault_injection import Weather
from adapter.fakecluster.kinds import Json, Kinds
from adapter.fakecluster.metrics_apis import Metrics
from adapter.fakecluster.reads import Reading
from adapter.fakecluster.resource_path import Place, find_place
from adapter.fakecluster.reviews import Reviews
from adapter.fakecluster.server import ApiServer, Asked
from adapter.fakecluster.storage import Shelf, Write
from adapter.fakecluster.workload_controller import Workloads
from adapter.fakecluster.writes import Writing
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import Connection

_LOOPBACK: Final = "127.0.0.1"
_BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)


def loop_clock() -> datetime:
    """Tell a time that passes as the event loop's does, which in a test may be faster than the world's."""
    return _BEGINNING + timedelta(seconds=asyncio.get_running_loop().time())


class Cluster:
    """The cluster, and the verbs by which somebody other than its clients changes it. Open it with `serving`."""

    def __init__(self, clock: Callable[[], datetime] = loop_clock) -> None:
        self.clock = clock
        self.shelf = Shelf()
        self.kinds = Kinds()
        self.reviews = Reviews()
        self.weather = Weather()
        self.metrics = Metrics(self.shelf, clock)
        self._reading = Reading(self.shelf)
        self._writing = Writing(self.shelf, self.kinds, clock)
        self.workloads = Workloads(self.shelf, self.kinds, self._writing, clock)
        self._api = ApiServer(
            self.shelf, self.kinds, self._reading, self._writing, self.reviews, self.metrics, self.weather
        )
        self._runner: web.AppRunner | None = None
        self._port = 0

    @classmethod
    @asynccontextmanager
    async def serving(cls, clock: Callable[[], datetime] = loop_clock) -> AsyncIterator[Self]:
        """Run a cluster for the length of the block."""
        cluster = cls(clock)
        await cluster.come_up()
        following = asyncio.create_task(cluster.workloads.run(), name="workloads")
        try:
            yield cluster
        finally:
            await cluster.go_down()
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    @property
    def connection(self) -> Connection:
        """How to reach it: no TLS, no credentials."""

        async def nobody() -> Mapping[str, str]:
            return {}

        return Connection(
            f"http://{_LOOPBACK}:{self._port}", ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), None, None, nobody
        )

    def client(self) -> AbstractAsyncContextManager[KubeClient]:
        """Open a session with it."""
        return KubeClient.open(self.connection)

    @property
    def asked(self) -> list[Asked]:
        """Every request that came, oldest first; clear it to count from here."""
        return self._api.asked

    # --- its objects, as somebody else sees and changes them ---------------------------------------------------------

    def get(self, path: str) -> Json | None:
        """Look at an object, or its scale; None: there is none."""
        try:
            return copy.deepcopy(self._reading.get(self._place(path)))
        except Refused:
            return None

    def create(self, collection: str, body: Json) -> Json:
        """Create an object."""
        return copy.deepcopy(self._writing.create(self._place(collection), copy.deepcopy(body)))

    def edit(self, path: str, patch: Json) -> Json:
        """Merge a change into an object, its status or its scale."""
        return copy.deepcopy(self._writing.patch(self._place(path), copy.deepcopy(patch)))

    def put(self, path: str, content: Json) -> Json:
        """Write a whole object, whether or not it is there."""
        place = self._place(path)
        body = copy.deepcopy(content)
        if self.get(path) is None:
            body.setdefault("metadata", {})["name"] = place.name
            return self._writing.create(Place(place.kind, place.namespace, "", ""), body)
        current = self._reading.get(place)["metadata"]["resourceVersion"]
        body["metadata"] = {**body.get("metadata", {}), "resourceVersion": current}
        return self._writing.replace(place, body)

    def delete(self, path: str) -> None:
        """Delete an object."""
        self._writing.delete(self._place(path))

    def define(self, definition: Json) -> None:
        """Let there be a kind, given as a CustomResourceDefinition."""
        self.put(
            f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}", definition
        )

    def list(self, collection: str) -> list[Json]:
        """List a collection."""
        return copy.deepcopy(self._reading.list(self._place(collection), {})["items"])

    # --- bad days ----------------------------------------------------------------------------------------------------

    def refuse_next(self, code: int, *, times: int = 1, verb: str = "", within: str = "", after: int = 0) -> None:
        """Refuse the next requests with this code: all, or those of a verb, or those with `within` in their path."""
        self.weather.refuse_next(code, times=times, verb=verb, within=within, after=after)

    def hang_up(self) -> None:
        """End every watch; clients can go on from where they were."""
        self.shelf.hang_up()

    def expire_watches(self) -> None:
        """End every watch and every list that is being turned; none can go on, all must begin again."""
        self.shelf.compact()
        self._reading.forget_pages()
        self.shelf.hang_up()

    def bookmark(self) -> None:
        """Send a bookmark to every watch that wants them."""
        for subscription in tuple(self.shelf.watching()):
            subscription.writes.put_nowait(Write(self.shelf.version, subscription.resource or ("", ""), None, None))

    async def go_down(self) -> None:
        """Stop listening and drop every connection; what is stored stays."""
        self.shelf.hang_up()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def come_up(self) -> None:
        """Listen, where it listened before."""
        self._runner = web.AppRunner(self._api.application(), shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, _LOOPBACK, self._port, reuse_address=True).start()
        self._port = self._runner.addresses[0][1]

    def _place(self, path: str) -> Place:
        return find_place(path, self.kinds)

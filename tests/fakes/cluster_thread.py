"""An in-memory cluster with a kubeconfig, for commands that run their own event loop."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import yaml

from adapter.custom_resources.definitions import definition_of
from tests.fakes.cluster import Cluster
from tests.waiting import GIVE_UP


class ClusterThread(threading.Thread):
    """An in-memory cluster in a thread, because the command runs its own event loop."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.kubeconfig = folder / "kubeconfig"
        self.ready = threading.Event()
        self.cluster: Cluster | None = None
        self._stop_event: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        definitions = await asyncio.to_thread(lambda: [*map(definition_of, ("podautoscalers", "externalmetrics"))])
        self._loop, self._stop_event = asyncio.get_running_loop(), asyncio.Event()
        async with Cluster.serving() as cluster:
            for definition in definitions:
                cluster.install_crd(definition)
            self.cluster = cluster
            server = {"name": "it", "cluster": {"server": cluster.connection.server}}
            context = {"name": "it", "context": {"cluster": "it", "user": "it"}}
            users = [{"name": "it", "user": {}}]
            content = {"clusters": [server], "contexts": [context], "users": users, "current-context": "it"}
            text = yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **content})
            await asyncio.to_thread(self.kubeconfig.write_text, text)
            self.ready.set()
            await self._stop_event.wait()

    def call(self, function: Callable[[Cluster], None]) -> None:
        """Call a function with the cluster, in its event loop, and wait for it."""

        async def run() -> None:
            assert self.cluster is not None
            function(self.cluster)

        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(run(), self._loop).result(60)

    def stop(self) -> None:
        assert self._loop is not None
        assert self._stop_event is not None
        self._loop.call_soon_threadsafe(self._stop_event.set)
        self.join(GIVE_UP)

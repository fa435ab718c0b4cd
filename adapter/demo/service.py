"""The service in the demo, as `steadyscale serve` runs it, and the files that a user needs to connect to it."""

import asyncio
import json
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from socket import socket
from typing import Final

import aiohttp

from adapter import app
from adapter.config.loading import ConfigFile
from adapter.debug.page_proxy import PageTarget, page_proxy
from adapter.demo.environment import API_SERVICE, kubeconfig
from adapter.demo.instructions import CA, KUBECONFIG, TOKEN
from adapter.demo.narrator import Narrator
from adapter.fakecluster.kinds import Json
from autoscaler.kube.client import KubeClient
from autoscaler.ports import Clock
from autoscaler.settings import ControllerOptions

_POLL_INTERVAL: Final = 1.0
_NO_LEADER_ELECTION: Final = ControllerOptions(leader_elect=False)
"""There is one process, and in accelerated time it would renew its lease many times a second."""


class DemoService:
    """The service. Enter `running` first, then `ready`."""

    def __init__(self, folder: Path, config: Json, *, cluster: str, token: str) -> None:
        self._cluster = cluster
        self._token = token
        self._folder = folder
        self.url = f"https://localhost:{config['serving']['port']}"
        file = folder / "config.yaml"
        file.write_text(
            json.dumps({**config, "auth": {"kubeconfig": str(folder / KUBECONFIG)}}, indent=2), encoding="utf-8"
        )
        (folder / KUBECONFIG).write_text(json.dumps(kubeconfig(cluster=cluster), indent=2), encoding="utf-8")
        self._file = ConfigFile(file, {})

    @asynccontextmanager
    async def running(self, clock: Clock, narrator: Narrator, listening: socket) -> AsyncIterator[None]:
        stop = asyncio.Event()
        environment = app.Environment(stop, clock, (narrator,), listening)
        components = app.Components(autoscaler=_NO_LEADER_ELECTION)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(app.run(self._file, self._file.start(), components, environment))
            try:
                yield
            finally:
                stop.set()

    @asynccontextmanager
    async def ready(self, kube: KubeClient, *, with_page: bool) -> AsyncIterator[str]:
        """Wait until the service is ready, write the files for its user, serve the page, and yield its address."""
        ca = await self._ca(kube)
        tls = ssl.create_default_context(cadata=ca)
        await self._wait_until_ready(tls)
        config = kubeconfig(cluster=self._cluster, metrics=self.url, ca=ca, token=self._token)
        for name, text in {CA: ca, TOKEN: self._token, KUBECONFIG: json.dumps(config, indent=2)}.items():
            (self._folder / name).write_text(text, encoding="utf-8")
        target = PageTarget(self.url, self._credentials, tls)
        async with page_proxy(target) if with_page else nullcontext("") as page:
            yield page

    async def _credentials(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    async def _ca(self, kube: KubeClient) -> str:
        """Wait until the service has written its CA to the APIService, and return it."""
        while True:
            bundle = (await kube.get(API_SERVICE))["spec"].get("caBundle")
            if bundle:
                return b64decode(bundle).decode()
            await asyncio.sleep(_POLL_INTERVAL)

    async def _wait_until_ready(self, tls: ssl.SSLContext) -> None:
        async with aiohttp.ClientSession(self.url) as session:
            while True:
                async with session.get("/readyz", ssl=tls) as response:
                    if response.status == 200:
                        return
                await asyncio.sleep(_POLL_INTERVAL)

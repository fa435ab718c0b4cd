"""The service in the demonstration, as `steadyscale serve` runs it, and what a visitor needs to ask it."""

import asyncio
import json
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp

from adapter import app
from adapter.config.loading import ConfigFile
from adapter.demo.environment import REGISTRATION
from adapter.demo.instructions import Places
from adapter.demo.narrator import Narrator
from adapter.demo.page_proxy import page_door
from adapter.fakecluster.kinds import Json
from adapter.fakecluster.kubeconfig import kubeconfig
from autoscaler.kube.client import KubeClient
from autoscaler.ports import Clock
from autoscaler.settings import Operation

_LOOK_AGAIN: Final = 1.0
_ALONE: Final = Operation(leader_elect=False)
"""Nobody else could lead, and a lease that is renewed thirty times a second tells nothing."""


class Visit(NamedTuple):
    """Who visits, and what for."""

    cluster: str
    """The cluster's URL."""

    token: str
    with_page: bool

    async def credentials(self) -> dict[str, str]:
        """Say who visits."""
        return {"Authorization": f"Bearer {self.token}"}


class Service:
    """The service. `running` first, `visited` inside it."""

    def __init__(self, folder: Path, config: Json, visit: Visit) -> None:
        self._folder = folder
        self._visit = visit
        self._url = f"https://localhost:{config['serving']['port']}"
        self._places = Places(self._url, folder, "")
        file = folder / "config.yaml"
        file.write_text(json.dumps({**config, "auth": {"kubeconfig": str(self._places.kubeconfig)}}, indent=2))
        self._write_kubeconfig("")
        self._file = ConfigFile(file, {})

    @asynccontextmanager
    async def running(self, clock: Clock, narrator: Narrator) -> AsyncIterator[None]:
        """Run it for the length of the block."""
        stop = asyncio.Event()
        around = app.Environment(stop, clock, (narrator,))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(app.run(self._file, self._file.start(), app.Components(operation=_ALONE), around))
            try:
                yield
            finally:
                stop.set()

    @asynccontextmanager
    async def visited(self, kube: KubeClient) -> AsyncIterator[Places]:
        """Wait until it can be asked, and leave everything that is needed for that in the folder."""
        authority = await self._authority(kube)
        tls = ssl.create_default_context(cadata=authority)
        await self._is_ready(tls)
        self._places.authority.write_text(authority)
        self._places.token.write_text(self._visit.token)
        self._write_kubeconfig(authority)
        async with AsyncExitStack() as stack:
            page = ""
            if self._visit.with_page:
                page = await stack.enter_async_context(page_door(self._url, self._visit.credentials, tls))
            yield self._places._replace(page=page)

    def _write_kubeconfig(self, authority: str) -> None:
        metrics = self._url if authority else ""
        content = kubeconfig(cluster=self._visit.cluster, metrics=metrics, authority=authority, token=self._visit.token)
        self._places.kubeconfig.write_text(json.dumps(content, indent=2))

    async def _authority(self, kube: KubeClient) -> str:
        """Read whom to trust where an API server reads it: in the registration, once the service wrote it there."""
        while True:
            bundle = (await kube.get(REGISTRATION))["spec"].get("caBundle")
            if bundle:
                return b64decode(bundle).decode()
            await asyncio.sleep(_LOOK_AGAIN)

    async def _is_ready(self, tls: ssl.SSLContext) -> None:
        async with aiohttp.ClientSession(self._url) as session:
            while True:
                async with session.get("/readyz", ssl=tls) as answer:
                    if answer.status == 200:
                        return
                await asyncio.sleep(_LOOK_AGAIN)

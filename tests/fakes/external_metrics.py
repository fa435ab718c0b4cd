"""Our door without the house: real TLS, real certificates, the real guard; behind it, the word who came in."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from adapter.auth.attributes import attributes_of
from adapter.auth.delegated_auth import Guard, guard
from adapter.errors import AdapterError, Unauthenticated
from adapter.fakecluster.cluster import Cluster
from adapter.tls.context import Pair, ServingContext
from tests.control_plane.certificates import Authority, Credentials

CONFIGMAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/my-metric"
USERS, PROXIES, STRANGERS, SERVING = (Authority.new(name) for name in ("users", "proxies", "strangers", "serving"))


def clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - handshakes live in the present


def trust(**changes: str) -> dict[str, Any]:
    """Make the configmap as an API server writes it, but for `changes`; `-` stands for what Python calls `_`."""
    data = {
        "client-ca-file": USERS.pem,
        "requestheader-client-ca-file": PROXIES.pem,
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
    return {"data": data | {key.replace("_", "-"): value for key, value in changes.items()}}


@dataclass
class Answer:
    """What the door said: a code, and who it took the caller for or why it refused."""

    code: int
    body: dict[str, Any]


@dataclass
class Door:
    """A listener, and everything that a test may want to change about it."""

    api: Cluster
    guard: Guard
    context: ServingContext
    port: int
    folder: Path

    async def knock(
        self,
        path: str = METRIC,
        *,
        headers: Iterable[tuple[str, str]] = (),
        show: Credentials | None = None,
        method: str = "GET",
    ) -> Answer:
        """Send one request on a new connection."""
        async with self.visitor(show) as session:
            return await self.ask(session, path, headers=headers, method=method)

    @asynccontextmanager
    async def visitor(self, show: Credentials | None = None) -> AsyncIterator[aiohttp.ClientSession]:
        """Open a session whose connections show this certificate."""
        connector = aiohttp.TCPConnector(ssl=await asyncio.to_thread(self._tls, show))
        async with aiohttp.ClientSession(connector=connector) as session:
            yield session

    async def ask(
        self,
        session: aiohttp.ClientSession,
        path: str = METRIC,
        *,
        headers: Iterable[tuple[str, str]] = (),
        method: str = "GET",
    ) -> Answer:
        url = f"https://localhost:{self.port}{path}"
        async with session.request(method, url, headers=list(headers)) as response:
            return Answer(response.status, json.loads(await response.read() or b"{}"))

    def _tls(self, show: Credentials | None) -> ssl.SSLContext:
        tls = ssl.create_default_context(cadata=SERVING.pem)
        if show is not None:
            tls.load_cert_chain(*show.save(self.folder, "shown"))
        return tls


@asynccontextmanager
async def open_door(folder: Path) -> AsyncIterator[Door]:
    """Serve, with the cluster's trust already read."""
    async with Cluster.serving() as api, api.client() as client, asyncio.TaskGroup() as tasks:
        api.put(CONFIGMAP, trust())
        keeper, context = guard(client, clock), ServingContext()
        keeper.trusted.tell(lambda now: context.ask_for(now.authorities))
        served = SERVING.server("localhost")
        context.serve_with(Pair(served.certificate_pem, served.key_pem))
        following = tasks.create_task(keeper.run())
        await settled(keeper, 1)
        runner = web.ServerRunner(web.Server(lambda request: _answer(keeper, request)), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context.listener)
        await site.start()
        yield Door(api, keeper, context, runner.addresses[0][1], folder)
        await runner.cleanup()
        following.cancel()


async def settled(keeper: Guard, generation: int) -> None:
    """Wait until the trust has been read, or changed, that often."""
    async with asyncio.timeout(10):
        while keeper.trusted.generation < generation:  # noqa: ASYNC110 - the watch has no bell to ring for a test
            await asyncio.sleep(0.01)


async def _answer(keeper: Guard, request: web.BaseRequest) -> web.Response:
    try:
        caller = await keeper.authenticator.authenticate(request)
        await keeper.authorizer.authorize(caller, attributes_of(request.method, request.path, request.query))
    except AdapterError as error:
        why = error.why if isinstance(error, Unauthenticated) else error.message
        return web.json_response({"why": why}, status=error.code)
    extra = {key: list(values) for key, values in caller.extra}
    return web.json_response({"name": caller.name, "uid": caller.uid, "groups": list(caller.groups), "extra": extra})

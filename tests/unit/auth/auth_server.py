"""A server with the production TLS context and delegated auth, which responds with the authenticated caller."""

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
from adapter.auth.delegated_auth import DelegatedAuth
from adapter.config.model import Auth
from adapter.errors import AdapterError, Unauthenticated
from adapter.telemetry import Telemetry
from adapter.tls.context import KeyPair, ServingContext
from tests.control_plane.certificates import Authority, Credentials
from tests.fakes.cluster import Cluster
from tests.waiting import GIVE_UP

CONFIGMAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/my-metric"
USERS, PROXIES, UNKNOWN, SERVING = (Authority.new(name) for name in ("users", "proxies", "unknown", "serving"))


def clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - TLS handshakes use the real time


def configmap(**changes: str) -> dict[str, Any]:
    """Return the ConfigMap as an API server writes it, with changed keys; ``_`` stands for ``-``."""
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
class Response:
    """The status code and, as JSON, the caller or the error."""

    code: int
    body: dict[str, Any]


@dataclass
class AuthServer:
    """A running server and its fake API server."""

    api: Cluster
    auth: DelegatedAuth
    port: int
    folder: Path

    async def request(
        self,
        path: str = METRIC,
        *,
        headers: Iterable[tuple[str, str]] = (),
        certificate: Credentials | None = None,
        method: str = "GET",
    ) -> Response:
        """Send one request on a new connection."""
        async with self.session(certificate) as session:
            return await self.send(session, path, headers=headers, method=method)

    @asynccontextmanager
    async def session(self, certificate: Credentials | None = None) -> AsyncIterator[aiohttp.ClientSession]:
        """Open a session that uses this client certificate."""
        connector = aiohttp.TCPConnector(ssl=await asyncio.to_thread(self._tls, certificate))
        async with aiohttp.ClientSession(connector=connector) as session:
            yield session

    async def send(
        self,
        session: aiohttp.ClientSession,
        path: str = METRIC,
        *,
        headers: Iterable[tuple[str, str]] = (),
        method: str = "GET",
    ) -> Response:
        url = f"https://localhost:{self.port}{path}"
        async with session.request(method, url, headers=list(headers)) as response:
            return Response(response.status, json.loads(await response.read() or b"{}"))

    async def update_configmap(self, content: dict[str, Any]) -> None:
        """Replace the ConfigMap and wait until the server uses it."""
        generation = self.auth.trust_store.generation
        self.api.put(CONFIGMAP, content)
        await wait_for_generation(self.auth, generation + 1)

    def _tls(self, certificate: Credentials | None) -> ssl.SSLContext:
        tls = ssl.create_default_context(cadata=SERVING.pem)
        if certificate is not None:
            tls.load_cert_chain(*certificate.save(self.folder, "client"))
        return tls


@asynccontextmanager
async def auth_server(folder: Path) -> AsyncIterator[AuthServer]:
    """Run the server, after the ConfigMap was read."""
    async with Cluster.serving() as api, api.client() as client, asyncio.TaskGroup() as tasks:
        api.put(CONFIGMAP, configmap())
        tls = ServingContext()
        auth = DelegatedAuth(client, Auth(), clock, Telemetry(), lambda trusted: tls.use_client_cas(trusted.pem))
        serving = SERVING.server("localhost")
        tls.use_key_pair(KeyPair(serving.certificate_pem, serving.key_pem))
        following = tasks.create_task(auth.run())
        await wait_for_generation(auth, 1)
        runner = web.ServerRunner(web.Server(lambda request: _handle(auth, request)), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls.listener)
        await site.start()
        yield AuthServer(api, auth, runner.addresses[0][1], folder)
        await runner.cleanup()
        following.cancel()


async def wait_for_generation(auth: DelegatedAuth, generation: int) -> None:
    async with asyncio.timeout(GIVE_UP):
        while auth.trust_store.generation < generation:  # noqa: ASYNC110 - production code needs no event for this
            await asyncio.sleep(0.01)


async def _handle(auth: DelegatedAuth, request: web.BaseRequest) -> web.Response:
    try:
        caller = await auth.authenticator.authenticate(request)
        await auth.authorizer.authorize(caller, attributes_of(request.method, request.path, request.query))
    except AdapterError as error:
        message = error.cause if isinstance(error, Unauthenticated) else error.message
        return web.json_response({"error": message}, status=error.code)
    extra = {key: list(values) for key, values in caller.extra}
    return web.json_response({"name": caller.name, "uid": caller.uid, "groups": list(caller.groups), "extra": extra})

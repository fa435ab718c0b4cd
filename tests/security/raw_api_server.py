"""An API server whose ExternalMetric objects are given as bytes: any text, whether or not it can be decoded."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.kube.client import KubeClient
from tests.fakes.cluster import Cluster

_COLLECTION = "/apis/steadyscale.dev/v1beta1/externalmetrics"
_OBJECT = "/apis/steadyscale.dev/v1beta1/namespaces/{namespace}/externalmetrics/{name}/status"


@dataclass
class RawApiServer:
    """Answers a list with ``objects``, a watch with ``lines``, and the patch of a status with the object."""

    objects: dict[str, bytes] = field(default_factory=dict)
    """By ``namespace/name``."""

    lines: "asyncio.Queue[bytes]" = field(default_factory=asyncio.Queue)
    statuses: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    """The written statuses, by ``namespace/name``."""

    def change(self, key: str, content: bytes) -> None:
        self.objects[key] = content
        self.lines.put_nowait(b'{"type":"MODIFIED","object":%s}' % content)

    async def get(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            body = b'{"kind":"ExternalMetricList","metadata":{"resourceVersion":"1"},"items":[%s]}'
            return web.Response(body=body % b",".join(self.objects.values()), content_type="application/json")
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(await self.lines.get() + b"\n")

    async def patch(self, request: web.Request) -> web.Response:
        key = f"{request.match_info['namespace']}/{request.match_info['name']}"
        self.statuses.setdefault(key, []).append((await request.json())["status"])
        return web.Response(body=self.objects[key], content_type="application/json")

    @asynccontextmanager
    async def client(self) -> AsyncIterator[KubeClient]:
        app = web.Application()
        app.add_routes([web.get(_COLLECTION, self.get), web.patch(_OBJECT, self.patch)])
        async with TestServer(app) as server:
            connection = replace(Cluster().connection, server=str(server.make_url("")).rstrip("/"))
            async with KubeClient.open(connection) as client:
                yield client

"""An API server in memory, on loopback, for as much of it as the adapter relies on.

It knows: objects of any kind by path, with a resourceVersion that grows; 404; 409 for what exists already and for
writes over something newer; merge patches; lists by name; watches with bookmarks; TokenReviews; SubjectAccessReviews.
It does not know: defaults, validation, admission, paging, other selectors, managed fields. What it knows it does as the
real one does; `tests/contract` runs the same sentences on both.
"""

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from aiohttp import web

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import Connection
from tests.fakes.plain import plain_connection

Json: TypeAlias = dict[str, Any]


@dataclass
class FakeKubeApi:
    """The state, and the verbs by which a test changes it."""

    objects: dict[str, Json] = field(default_factory=dict)
    """By path: /api/v1/namespaces/default/secrets/name."""

    tokens: dict[str, Json] = field(default_factory=dict)
    """Who each good token belongs to, as a TokenReview says it."""

    allows: Callable[[Json], bool] = lambda _spec: False
    """Whether a SubjectAccessReview's spec is allowed."""

    reviewed: list[Json] = field(default_factory=list)
    """Every review that was asked for, newest last."""

    refusing: int = 0
    """While not zero, every request is refused with this code."""

    expired: bool = False
    """While set, no watch can go on from anywhere: all must list again."""

    connection: Connection = field(init=False)
    _version: int = 100
    _events: list[tuple[int, str, Json]] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    @asynccontextmanager
    async def serving(cls) -> AsyncIterator[Self]:
        api = cls()
        runner = web.AppRunner(_application(api), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        api.connection = plain_connection(runner.addresses[0][1])
        try:
            yield api
        finally:
            await runner.cleanup()

    def client(self) -> Any:
        return KubeClient.open(self.connection)

    def put(self, path: str, content: Json) -> None:
        """Write an object as somebody else would."""
        self._store("MODIFIED" if path in self.objects else "ADDED", path, content)

    def delete(self, path: str) -> None:
        self._announce("DELETED", path, self.objects.pop(path))

    def hang_up(self) -> None:
        """End every watch that is open."""
        self._changed.set()
        self._changed = asyncio.Event()

    # --- requests ----------------------------------------------------------------------------------------------------

    async def review_token(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.reviewed.append(body)
        user = self.tokens.get(body["spec"]["token"])
        status: Json = {"authenticated": True, "user": user} if user else {"user": {}, "error": "invalid bearer token"}
        return web.json_response({**body, "status": status}, status=201)

    async def review_access(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.reviewed.append(body)
        return web.json_response({**body, "status": {"allowed": self.allows(body["spec"])}}, status=201)

    async def read(self, request: web.Request) -> web.StreamResponse:
        if (found := self.objects.get(request.path)) is not None:
            return web.json_response(found)
        if request.path.rsplit("/", 1)[1] in {"configmaps", "secrets", "apiservices"}:
            return await (self._watch(request) if "watch" in request.query else self._list(request))
        return _refused(404, "NotFound", f"{request.path} not found")

    async def create(self, request: web.Request) -> web.Response:
        body = await request.json()
        path = f"{request.path}/{body['metadata']['name']}"
        if path in self.objects:
            return _refused(409, "AlreadyExists", f"{path} already exists")
        return web.json_response(self._store("ADDED", path, body), status=201)

    async def replace(self, request: web.Request) -> web.Response:
        return self._write(request.path, await request.json(), merge=False)

    async def patch(self, request: web.Request) -> web.Response:
        return self._write(request.path, await request.json(), merge=True)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _write(self, path: str, body: Json, *, merge: bool) -> web.Response:
        found = self.objects.get(path)
        if found is None:
            return _refused(404, "NotFound", f"{path} not found")
        version = body.get("metadata", {}).get("resourceVersion")
        if version is not None and version != found["metadata"]["resourceVersion"]:
            return _refused(409, "Conflict", "the object has been modified")
        return web.json_response(self._store("MODIFIED", path, _merged(found, body) if merge else body))

    def _store(self, happened: str, path: str, content: Json) -> Json:
        name = path.rsplit("/", 1)[1]
        stored = copy.deepcopy({**content, "metadata": {**content.get("metadata", {}), "name": name}})
        self.objects[path] = stored
        self._announce(happened, path, stored)
        return stored

    def _announce(self, happened: str, path: str, content: Json) -> None:
        self._version += 1
        content["metadata"]["resourceVersion"] = str(self._version)
        self._events.append((self._version, path, {"type": happened, "object": copy.deepcopy(content)}))
        self.hang_up()

    async def _list(self, request: web.Request) -> web.Response:
        items = [thing for path, thing in self.objects.items() if _is_selected(path, request)]
        return web.json_response({"metadata": {"resourceVersion": str(self._version)}, "items": items})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        """Send what has happened since, wait until something happens, send that, and end; the client comes again."""
        response = web.StreamResponse()
        await response.prepare(request)
        since = int(request.query["resourceVersion"])
        if self.expired:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            await _send(response, {"type": "ERROR", "object": gone})
            return response
        if self._version <= since:
            await self._changed.wait()
        for version, path, event in self._events:
            if version > since and _is_selected(path, request):
                await _send(response, event)
        await _send(response, {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self._version)}}})
        return response


def _application(api: FakeKubeApi) -> web.Application:
    @web.middleware
    async def refuse(request: web.Request, handler: Any) -> web.StreamResponse:
        if api.refusing:
            return _refused(api.refusing, "ServiceUnavailable", "refused on request")
        answer: web.StreamResponse = await handler(request)
        return answer

    application = web.Application(middlewares=[refuse])
    application.router.add_post("/apis/authentication.k8s.io/v1/tokenreviews", api.review_token)
    application.router.add_post("/apis/authorization.k8s.io/v1/subjectaccessreviews", api.review_access)
    application.router.add_get("/{path:.*}", api.read, allow_head=False)
    application.router.add_post("/{path:.*}", api.create)
    application.router.add_put("/{path:.*}", api.replace)
    application.router.add_patch("/{path:.*}", api.patch)
    return application


def _is_selected(path: str, request: web.Request) -> bool:
    collection, name = path.rsplit("/", 1)
    wanted = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
    return collection == request.path and wanted in {"", name}


def _merged(into: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(into, dict):
        return patch
    kept = {key: value for key, value in into.items() if not (key in patch and patch[key] is None)}
    return kept | {key: _merged(into.get(key), value) for key, value in patch.items() if value is not None}


def _refused(code: int, reason: str, message: str) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }
    return web.json_response(status, status=code)


async def _send(response: web.StreamResponse, event: Json) -> None:
    await response.write(json.dumps(event).encode() + b"\n")

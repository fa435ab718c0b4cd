"""The HTTP handler: routes each request to reviews, aggregated APIs, discovery, reads, writes or watch."""

from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from aiohttp import web

from adapter.fakecluster.api_errors import ApiError, unknown_resource
from adapter.fakecluster.discovery import discover
from adapter.fakecluster.kinds import Json, Kinds, ResourcePath
from adapter.fakecluster.object_reader import ObjectReader
from adapter.fakecluster.object_writer import ObjectWriter
from adapter.fakecluster.storage import Storage
from adapter.fakecluster.watch import watch

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_MERGE_PATCH: Final = "application/merge-patch+json"
_METADATA_ONLY: Final = "as=PartialObjectMetadataList"


@dataclass(frozen=True)
class ReceivedRequest:
    """A request, with its verb as in an RBAC rule."""

    verb: str
    path: str
    query: dict[str, str] = field(default_factory=dict)


@dataclass
class Reviews:
    """The users and permissions of the cluster, for TokenReview and SubjectAccessReview requests."""

    tokens: dict[str, Json] = field(default_factory=dict)
    """The user of each valid token, as in the status of a TokenReview."""

    authorize: Callable[[Json], bool] = lambda _spec: False
    """Decides whether the spec of a SubjectAccessReview is allowed."""

    requests: list[Json] = field(default_factory=list)
    """Every review that was requested, oldest first."""

    def handle(self, path: str, body: Json) -> Json | None:
        """Return the response to a review; None if the path is not a review."""
        match path:
            case "/apis/authentication.k8s.io/v1/tokenreviews":
                self.requests.append(body)
                user = self.tokens.get(body["spec"]["token"])
                unknown: Json = {"user": {}, "error": "invalid bearer token"}
                return {**body, "status": {"authenticated": True, "user": user} if user else unknown}
            case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
                self.requests.append(body)
                return {**body, "status": {"allowed": self.authorize(body["spec"])}}
            case _:
                return None


class ApiServer:
    """The HTTP handler, and the parts of the cluster that it routes to."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.storage = Storage()
        self.kinds = Kinds()
        self.reviews = Reviews()
        self.reader = ObjectReader(self.storage)
        self.writer = ObjectWriter(self.storage, self.kinds, clock)

    def application(self) -> web.Application:
        application = web.Application(client_max_size=16 * 2**20)
        application.router.add_route("*", "/{path:.*}", self.handle)
        return application

    async def on_request(self, request: ReceivedRequest, path: ResourcePath | None) -> None:
        """Do nothing; a subclass can raise an ApiError. ``path`` is None for reviews, discovery and unknown paths."""

    def aggregated(self, path: str, query: dict[str, str]) -> Json | None:  # noqa: ARG002 - for subclasses
        """Return the response of an aggregated API; None if the path is not served by one. There are none here."""
        return None

    def aggregated_groups(self) -> dict[str, tuple[str, ...]]:
        """Return the groups of aggregated APIs with their versions, for discovery."""
        return {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._route(request)
        except ApiError as error:
            headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
            return web.json_response(error.status(), status=error.code, headers=headers)

    async def _route(self, request: web.Request) -> web.StreamResponse:
        url, query = request.path, dict(request.query)
        body: Json = await request.json() if request.can_read_body else {}
        path = self.kinds.parse(url)
        verb = _VERBS.get(request.method) or _read_verb(path, query)
        await self.on_request(ReceivedRequest(verb, url, query), path)
        if request.method == "POST" and (review := self.reviews.handle(url, body)) is not None:
            return web.json_response(review, status=201)
        if request.method == "GET":
            content = self.aggregated(url, query) or discover(url, self.kinds, self.aggregated_groups())
            if content is not None:
                return web.json_response(content)
        if path is None:
            raise unknown_resource()
        if verb == "watch":
            return await self._watch(request, path, query)
        if verb == "list" and _METADATA_ONLY in request.headers.get("Accept", ""):
            return web.json_response(_metadata_only(self.reader.list(path, query)))
        return self._respond(verb, path, query, body, request.content_type)

    def _respond(
        self, verb: str, path: ResourcePath, query: dict[str, str], body: Json, content_type: str
    ) -> web.Response:
        match verb:
            case "list":
                return web.json_response(self.reader.list(path, query))
            case "get":
                return web.json_response(self.reader.get(path))
            case "create":
                return web.json_response(self.writer.create(path, body), status=201)
            case "update":
                return web.json_response(self.writer.replace(path, body))
            case "delete":
                return web.json_response(self.writer.delete(path))
            case _ if content_type != _MERGE_PATCH:
                message = f"the body of the request was in an unknown format - {content_type}"
                raise ApiError(415, "UnsupportedMediaType", message)
            case _:
                return web.json_response(self.writer.patch(path, body))

    async def _watch(self, request: web.Request, path: ResourcePath, query: dict[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        async with aclosing(watch(self.storage, path, query)) as lines:
            await response.prepare(request)
            with suppress(ConnectionResetError):  # the client disconnected
                async for line in lines:
                    await response.write(line)
        return response


def _metadata_only(listed: Json) -> Json:
    """Return a list as a PartialObjectMetadataList."""
    items = [{"metadata": item["metadata"]} for item in listed["items"]]
    return {**listed, "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "items": items}


def _read_verb(path: ResourcePath | None, query: dict[str, str]) -> str:
    if path is None or path.name:
        return "get"
    return "watch" if query.get("watch") in {"1", "true"} else "list"

"""HTTP in, HTTP out: which part of the cluster in memory answers a request."""

from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from adapter.fakecluster.api_errors import Refused
from adapter.fakecluster.discovery import discover
from adapter.fakecluster.fault_injection import Weather
from adapter.fakecluster.kinds import Json, Kinds
from adapter.fakecluster.metrics_apis import Metrics
from adapter.fakecluster.reads import Reading
from adapter.fakecluster.resource_path import Place, find_place
from adapter.fakecluster.reviews import Reviews
from adapter.fakecluster.storage import Shelf
from adapter.fakecluster.watch import watch
from adapter.fakecluster.writes import Writing

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_MERGE_PATCH: Final = "application/merge-patch+json"


@dataclass(frozen=True)
class Asked:
    """A request that came, as a role would describe it."""

    verb: str
    path: str
    query: dict[str, str] = field(default_factory=dict)


@dataclass
class ApiServer:
    """Everything that can answer."""

    shelf: Shelf
    kinds: Kinds
    reading: Reading
    writing: Writing
    reviews: Reviews
    metrics: Metrics
    weather: Weather
    asked: list[Asked] = field(default_factory=list)

    def application(self) -> web.Application:
        """Make what a listener serves."""
        application = web.Application(client_max_size=16 * 2**20)
        application.router.add_route("*", "/{path:.*}", self.answer)
        return application

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer any request."""
        try:
            return await self._answer(request)
        except Refused as refused:
            retry = {} if refused.retry_after is None else {"Retry-After": str(refused.retry_after)}
            return web.json_response(refused.status(), status=refused.code, headers=retry)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path, query = request.path, dict(request.query)
        body: Json = await request.json() if request.can_read_body else {}
        place = self._place(path)
        verb = _VERBS.get(request.method) or _reads(place, query)
        self.asked.append(Asked(verb, path, query))
        await self.weather.let_through(verb, path, _resource(place, path))
        if request.method == "POST" and (reviewed := self.reviews.answer(path, body)) is not None:
            return web.json_response(reviewed, status=201)
        if request.method == "GET":
            found = self.metrics.answer(path, query) or discover(path, self.kinds, self.metrics.groups())
            if found is not None:
                return web.json_response(found)
        place = place or find_place(path, self.kinds)
        if verb == "watch":
            return await self._watch(request, place, query)
        return self._do(verb, place, query, body, request.content_type)

    def _do(self, verb: str, place: Place, query: dict[str, str], body: Json, content_type: str) -> web.Response:
        match verb:
            case "list":
                return web.json_response(self.reading.list(place, query))
            case "get":
                return web.json_response(self.reading.get(place))
            case "create":
                return web.json_response(self.writing.create(place, body), status=201)
            case "update":
                return web.json_response(self.writing.replace(place, body))
            case "delete":
                return web.json_response(self.writing.delete(place))
            case _ if content_type != _MERGE_PATCH:
                raise Refused(
                    415, "UnsupportedMediaType", f"the body of the request was in an unknown format - {content_type}"
                )
            case _:
                return web.json_response(self.writing.patch(place, body))

    async def _watch(self, request: web.Request, place: Place, query: dict[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        async with aclosing(watch(self.shelf, place, query)) as lines:
            await response.prepare(request)
            with suppress(ConnectionResetError):  # whoever listened has left
                async for line in lines:
                    await response.write(line)
        return response

    def _place(self, path: str) -> Place | None:
        try:
            return find_place(path, self.kinds)
        except Refused:
            return None


def _reads(place: Place | None, query: dict[str, str]) -> str:
    if place is None or place.name:
        return "get"
    return "watch" if query.get("watch") in {"1", "true"} else "list"


def _resource(place: Place | None, path: str) -> str:
    if place is None:
        return path
    return f"{place.kind.plural}/{place.subresource}" if place.subresource else place.kind.plural

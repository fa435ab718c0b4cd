"""The in-memory API server of a virtual run: tells processes apart, injects faults by process, records writes."""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from aiohttp import web

from adapter.fakecluster.cluster import loop_clock
from adapter.fakecluster.kinds import ResourcePath
from adapter.fakecluster.watch import watch
from autoscaler.kube.connection import KubeConnection
from tests.fakes.cluster import Cluster
from tests.faults.proxy import Fault
from tests.faults.random_run.record import Json, LeaseWrite, Record, ScaleWrite, StatusWrite

_WRITE_METHODS: Final = frozenset({"PUT", "PATCH", "POST"})
_DECIDED: Final = web.RequestKey("decided", dict)


@dataclass(eq=False)
class Link:
    """The connection of one process to the API server."""

    faults: list[Fault] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, fault: Fault) -> None:
        self.faults.append(fault)

    def remove(self, fault: Fault) -> None:
        with suppress(ValueError):
            self.faults.remove(fault)
        self._changed.set()
        self._changed = asyncio.Event()

    def matching(self, request: web.Request) -> list[Fault]:
        """Return the faults of a request; whether a fault applies to it is decided once."""
        decided: dict[Fault, bool] = request.setdefault(_DECIDED, {})
        matching = [fault for fault in self.faults if fault.matches(request)]
        return [fault for fault in matching if decided.setdefault(fault, fault in decided or fault.applies())]

    async def while_stalled(self, request: web.Request) -> None:
        """Wait until no fault stalls the request."""
        while any(fault.stall for fault in self.matching(request)):
            await self._changed.wait()


class VirtualCluster(Cluster):
    """The API server, with one link per process."""

    def __init__(self, clock: Callable[[], datetime] = loop_clock) -> None:
        super().__init__(clock)
        self.links: dict[str, Link] = {}
        self.record = Record()

    def connection_of(self, process: str) -> KubeConnection:
        """Return a connection that identifies a process."""
        self.links[process] = Link()

        async def credentials() -> Mapping[str, str]:
            return {"Authorization": f"Bearer {process}"}

        return replace(self.connection, credentials=credentials)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        process = _process_of(request)
        link = self.links[process]
        faults = link.matching(request)
        await asyncio.sleep(sum(fault.delay for fault in faults))
        await link.while_stalled(request)
        if any(fault.drop for fault in faults) or not _is_connected(request):
            return _close(request)
        for fault in faults:
            if fault.status:
                body = {"kind": "Status", "code": fault.status, "reason": "Injected", "message": "injected fault"}
                return web.json_response(body, status=fault.status)
        response = await super().handle(request)
        if request.method in _WRITE_METHODS and response.status < 300 and isinstance(response, web.Response):
            self._record(process, request.path, json.loads(response.body or b"{}"))  # type: ignore[arg-type]
        return await self._answer(request, response, link, faults)

    async def _answer(
        self, request: web.Request, response: web.StreamResponse, link: Link, faults: list[Fault]
    ) -> web.StreamResponse:
        await asyncio.sleep(sum(fault.answer_delay for fault in faults))
        await link.while_stalled(request)
        is_cut = isinstance(response, web.Response) and any(fault.truncate >= 0 for fault in faults)
        if is_cut or any(fault.drop_answer for fault in faults):
            return _close(request)
        return response

    async def _watch(self, request: web.Request, path: ResourcePath, query: dict[str, str]) -> web.StreamResponse:
        link = self.links[_process_of(request)]
        response, sent = web.StreamResponse(headers={"Content-Type": "application/json"}), 0
        async with aclosing(watch(self.storage, path, query)) as lines:
            await response.prepare(request)
            with suppress(ConnectionResetError):  # the client disconnected
                async for line in lines:
                    await link.while_stalled(request)
                    sent += len(line)
                    if any(0 <= fault.truncate < sent for fault in link.matching(request)):
                        await response.write(line[: len(line) // 2])
                        return _close(request, response)
                    await response.write(line)
        return response

    def _record(self, process: str, path: str, content: Json) -> None:
        parsed, now = self.kinds.parse(path), self.clock().timestamp()
        if parsed is None:
            return
        match parsed.kind.plural, parsed.subresource:
            case "leases", _:
                is_released = not content["spec"].get("holderIdentity")
                self.record.writes.append(LeaseWrite(now, process, is_released))
            case _, "scale":
                replicas = content["spec"].get("replicas", 0)
                self.record.writes.append(ScaleWrite(now, process, parsed.name, replicas))
            case "podautoscalers", "status":
                self.record.writes.append(StatusWrite(now, process, parsed.name))
            case _:
                pass  # events, which may be written by any process


def _process_of(request: web.Request) -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


def _is_connected(request: web.Request) -> bool:
    return request.transport is not None and not request.transport.is_closing()


def _close(request: web.Request, response: web.StreamResponse | None = None) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return response or web.Response()

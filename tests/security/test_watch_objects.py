"""No object, list item, watch line or response, whatever it contains, ends a watch or hides another object."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import SystemRandom
from typing import Any

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from adapter.custom_resources.watched_object import read_object
from adapter.fakecluster.cluster import loop_time
from autoscaler.kube.client import KubeClient
from autoscaler.kube.informer import Informer
from autoscaler.kube.metrics import KubeMetrics
from autoscaler.kube.pods import decode_pod
from autoscaler.kube.scale_paths import ScalePaths, built_in_scale, custom_scale
from autoscaler.kube.watch import ListWatch
from autoscaler.wire import decode_autoscaler
from tests.fakes.plain import plain_connection
from tests.security.hostile_json import HostileJson, Json

pytestmark = pytest.mark.looptime

LINES = 150
PATHS = ScalePaths(".spec.size", ".status.size", ".status.selector")
REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CONDITION = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "a"}
CONTAINER = {"name": "it", "resources": {"requests": {"cpu": "100m"}}}
TRANSFORMS: dict[str, tuple[Callable[[Json], object], Json]] = {
    "podautoscalers": (
        decode_autoscaler,
        {
            "spec": {"scaleTargetRef": REFERENCE, "minReplicas": 1, "maxReplicas": 5, "metrics": []},
            "status": {"lastScaleTime": "2026-01-01T00:00:00Z", "conditions": [CONDITION], "currentReplicas": 3},
        },
    ),
    "pods": (
        decode_pod,
        {"spec": {"containers": [CONTAINER]}, "status": {"phase": "Running", "conditions": [CONDITION]}},
    ),
    "deployments": (
        built_in_scale,
        {"spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}}, "status": {"replicas": 3}},
    ),
    "widgets": (
        lambda content: custom_scale(content, PATHS),
        {"spec": {"size": 3}, "status": {"size": 3, "selector": "app=web"}},
    ),
    "externalmetrics": (
        read_object,
        {"spec": {"metric": "queue", "backend": "main", "parameters": {"query": "up"}}, "status": {"series": 1}},
    ),
}


class Api:
    """An API server with a scripted watch; its list has every object that was written before."""

    def __init__(self, items: list[bytes], lines: list[bytes], page: bytes = b"") -> None:
        self.items = items
        self.version = 100
        self._lines = iter(lines)
        self._corrupt_page = page
        """The response to the first list, if not empty."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if "watch" in request.query:
            return await self._watch(request)
        if self._corrupt_page:
            body, self._corrupt_page = self._corrupt_page, b""
            return web.Response(body=body, content_type="application/json")
        metadata = f'"metadata":{{"resourceVersion":"{self.version}"}}'.encode()
        items = b",".join(self.items[: int(request.query["limit"])])
        return web.Response(body=b'{"kind":"List",' + metadata + b',"items":[' + items + b"]}")

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for template in self._lines:
            self.version += 1
            line = template.replace(b"VERSION", str(self.version).encode())
            if b'"good-' in line:
                self.items.append(json.dumps(json.loads(line)["object"]).encode())
            await response.write(line + b"\n")
        await asyncio.sleep(3600)
        return response


@asynccontextmanager
async def informer_of(
    api: Api, resource: str, transform: Callable[[Json], Any], registry: CollectorRegistry
) -> AsyncIterator[Informer[Any]]:
    runner = web.ServerRunner(web.Server(api.handle), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    connection = plain_connection(runner.addresses[0][1], now=loop_time)
    async with KubeClient.open(connection, KubeMetrics(registry)) as client:
        informer = Informer(client, ListWatch(f"/api/{resource}"), transform)
        task = asyncio.create_task(informer.run())
        try:
            async with asyncio.timeout(None) as running:
                task.add_done_callback(lambda _: running.reschedule(0))
                yield informer
                assert not task.done()
        except TimeoutError:
            await task  # it has ended, or the test has timed out
            raise
        finally:
            task.cancel()
            await asyncio.wait((task,))
            await runner.cleanup()


def content(name: str, rest: Json, version: str = "VERSION") -> Json:
    labels = {"app": "web"}
    metadata = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": version, "labels": labels}
    return {"metadata": {**metadata, "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}, **rest}


def event(content: Json, event_type: str = "ADDED") -> Json:
    return {"type": event_type, "object": content}


async def until_all_known(informer: Informer[Any], names: list[str]) -> None:
    missing = {f"shop/{name}" for name in names}
    async with asyncio.timeout(600):
        while missing - set(informer.keys()):  # noqa: ASYNC110 - in virtual time
            await asyncio.sleep(1)


@pytest.mark.parametrize("seed", [1, 2, 3, None], ids=["seed 1", "seed 2", "seed 3", "random seed"])
@pytest.mark.parametrize("resource", TRANSFORMS)
async def test_informer_delivers_every_valid_object_among_hostile_ones(
    resource: str, seed: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    transform, rest = TRANSFORMS[resource]
    seed = SystemRandom().randrange(10**9) if seed is None else seed
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    hostile, names, lines = HostileJson(seed), [], []
    items = [hostile.mutate(content(f"evil-{index}", rest, "7")) for index in range(40)]
    parseable = [item for item in items if _is_balanced(item)]
    for index in range(20):
        names.append(f"good-list-{index}")
        parseable.append(json.dumps(content(names[-1], rest, "8")).encode())
    hostile.random.shuffle(parseable)
    for index in range(LINES):
        if index % 5 == 0:
            names.append(f"good-{index}")
            lines.append(json.dumps(event(content(names[-1], rest))).encode())
        event_type = hostile.random.choice(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "NEW"])
        lines.append(hostile.mutate(event(content(f"evil-{index}", rest), event_type)))
    registry = CollectorRegistry()
    caplog.set_level(logging.ERROR, "autoscaler.kube")  # there are thousands of warnings
    page = hostile.mutate({"metadata": {"resourceVersion": "5"}, "items": [content("evil", rest, "1")]})
    async with informer_of(Api(parseable, lines, page), resource, transform, registry) as informer:
        await until_all_known(informer, names)
    assert registry.get_sample_value("steadyscale_invalid_objects_total", {"resource": resource})


def _is_balanced(item: bytes) -> bool:
    """Return whether an item keeps the structure of the list around it; otherwise the whole list is malformed."""
    in_string, escaped, depth = False, False, 0
    for byte in item:
        if in_string:
            in_string, escaped = (True, not escaped and byte == 0x5C) if escaped or byte != 0x22 else (False, False)
        elif byte == 0x22:
            in_string = True
        elif byte in b"[{":
            depth += 1
        elif byte in b"]}":
            depth -= 1
            if depth < 0:
                return False
        elif byte == 0x2C and depth == 0:
            return False
    return depth == 0 and not in_string and bool(item.strip())

"""Lists, selectors and labels of any size take bounded memory and bounded time of the event loop."""

import asyncio
import gc
import json
import re
import weakref
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import pytest

from autoscaler.controller.selectors import parse_cached
from autoscaler.kube import objects
from autoscaler.kube.client import Json
from autoscaler.kube.discovery import Discovery, NoMatch
from autoscaler.kube.errors import NotFound
from autoscaler.kube.freshness import Freshness
from autoscaler.kube.informer import Informer
from autoscaler.kube.invalid_objects import InvalidObject
from autoscaler.kube.listing import ListWatch, list_objects
from autoscaler.kube.metrics import KubeMetrics
from autoscaler.kube.objects import check_object, decode_page
from autoscaler.kube.pods import decode_pod
from autoscaler.kube.scale_paths import ScalePaths, built_in_scale, custom_scale, decode_scale
from autoscaler.kube.watch import WatchDecoder
from autoscaler.types.observation import ScaleTarget, UnavailableTarget
from tests.waiting import GIVE_UP

METADATA = {"name": "web", "namespace": "shop", "resourceVersion": "1", "uid": "1"}
DEEP = b'{"a":' * 3000 + b"1" + b"}" * 3000
PAGES = 4


class TrackedObject(dict[str, Any]):
    """A decoded object that can be referenced weakly."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


class Api:
    """An API server whose list has several pages of one object, and whose watch has no events."""

    def __init__(self) -> None:
        self.metrics = KubeMetrics()
        self.known: list[int] = []
        """Number of decoded objects in memory at the request of each page."""
        self.decoded: weakref.WeakSet[TrackedObject] = weakref.WeakSet()
        self.watching = asyncio.Event()
        self.limits: list[str] = []

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def check(self, item: object) -> Json:
        content = check_object(item)
        assert isinstance(content, dict)
        tracked = TrackedObject(content)
        self.decoded.add(tracked)
        return tracked

    async def get_bytes(self, _path: str, query: Mapping[str, str]) -> bytes:
        gc.collect()
        self.known.append(len(self.decoded))
        self.limits.append(query["limit"])
        page = int(query.get("continue", "0"))
        items = [{"metadata": {**METADATA, "name": f"web-{page}"}}]
        metadata = {"resourceVersion": "9", "continue": str(page + 1) if page + 1 < PAGES else ""}
        return json.dumps({"metadata": metadata, "items": items}).encode()

    async def stream(self, *_: object) -> AsyncGenerator[bytes]:
        self.watching.set()
        yield json.dumps({"type": "ADDED", "object": {"metadata": {**METADATA, "resourceVersion": "10"}}}).encode()
        await asyncio.Event().wait()


async def test_informer_keeps_no_decoded_object_of_a_list_or_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    api: Any = Api()
    monkeypatch.setattr("autoscaler.kube.listing.check_object", api.check)
    monkeypatch.setattr("autoscaler.kube.watch.check_object", api.check)
    informer = Informer(api, ListWatch("/things"), lambda content: str(content["metadata"]["name"]))
    async with aclosing(_running(informer)) as running:
        await anext(running)
        async with asyncio.timeout(GIVE_UP):
            while informer.get("shop/web") is None:  # noqa: ASYNC110 - the informer has no event for it
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        gc.collect()
        assert len(informer.keys()) == PAGES + 1
        assert len(api.decoded) == 0
        assert max(api.known) <= 1
        assert all(int(limit) <= 250 for limit in api.limits)


async def _running(informer: Informer[str]) -> AsyncGenerator[None]:
    task = asyncio.create_task(informer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


class CountingPattern:
    """A regular expression that counts its matches: each is a step of the decoder in Python."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self.pattern = pattern
        self.count = 0

    def match(self, document: bytes, position: int) -> re.Match[bytes] | None:
        self.count += 1
        return self.pattern.match(document, position)


@pytest.mark.parametrize("filler", [b"0,", b'"",', b"[],", b'{"a":[0,"]"]},'])
def test_object_that_cannot_be_decoded_takes_few_steps(filler: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    brackets = CountingPattern(objects._BRACKET)
    monkeypatch.setattr(objects, "_BRACKET", brackets)
    spec = b'{"deep":' + DEEP + b',"many":[' + filler * 50_000 + b"0]}"
    item = b'{"metadata":' + json.dumps(METADATA).encode() + b',"spec":' + spec + b"}"
    page = decode_page(b'{"metadata":{"resourceVersion":"5"},"items":[' + item + b"]}")
    (listed,) = map(check_object, page.items)
    assert isinstance(listed, InvalidObject)
    assert listed.key == "shop/web"
    nested = 2 * 50_000 if filler.count(b"[") and filler.count(b"{") else 0
    assert brackets.count <= nested + 10_000
    brackets.count = 0
    received = WatchDecoder("1").decode(b'{"type":"MODIFIED","object":' + item + b"}")
    assert isinstance(received, InvalidObject)
    assert received.key == "shop/web"
    assert brackets.count <= 10


async def test_other_tasks_run_while_a_page_is_decoded() -> None:
    class OnePage(Api):
        async def get_bytes(self, _path: str, _query: Mapping[str, str]) -> bytes:
            content = {"metadata": METADATA, "spec": "x" * 65536}
            return json.dumps({"metadata": {"resourceVersion": "9"}, "items": [content] * 20}).encode()

    client: Any = OnePage()
    source, steps = ListWatch("/things"), []
    listing = asyncio.create_task(
        list_objects(client, source, Freshness(source.resource, client.now), lambda _: None, lambda _: steps.append(1))
    )
    turns = 0
    while not listing.done():
        await asyncio.sleep(0)
        turns += 1
    assert (len(steps), turns >= 20) == (20, True)


def deployment(selector: object) -> Json:
    return {"metadata": METADATA, "spec": {"replicas": 1, "selector": selector}, "status": {}}


LARGE_SELECTORS = {
    "labels": {"matchLabels": {f"key-{index}": "v" for index in range(40_000)}},
    "expressions": {"matchExpressions": [{"key": f"k{index}", "operator": "Exists"} for index in range(20_000)]},
    "values": {"matchExpressions": [{"key": "k", "operator": "In", "values": [str(i) for i in range(100_000)]}]},
    "empty values": {"matchExpressions": [{"key": "k", "operator": "In", "values": [""] * 100_000}]},
}
LARGE_TEXTS = {
    "one key": "k" * 700_000,
    "requirements": ",".join(f"k{index}" for index in range(100_000)),
    "requirements in a short text": ",".join(f"k{index}" for index in range(1000)),
    "values": f"k in ({','.join(map(str, range(100_000)))})",
    "empty values": f"k in ({',' * 100_000})",
}


@pytest.mark.parametrize("name", LARGE_SELECTORS)
def test_deployment_with_a_large_selector_is_unavailable_and_its_selector_is_not_kept(name: str) -> None:
    scale = built_in_scale(deployment(LARGE_SELECTORS[name])).scale
    assert isinstance(scale, UnavailableTarget)
    assert "selector is too large" in scale.message
    assert len(scale.message) < 256


@pytest.mark.parametrize("name", LARGE_TEXTS)
def test_custom_resource_and_scale_with_a_large_selector_are_unavailable(name: str) -> None:
    content = {"metadata": METADATA, "spec": {"replicas": 1}, "status": {"selector": LARGE_TEXTS[name]}}
    paths = ScalePaths(".spec.replicas", ".status.replicas", ".status.selector")
    for scale in (custom_scale(content, paths).scale, decode_scale(content).scale):
        assert isinstance(scale, UnavailableTarget)
        assert "selector is too large" in scale.message
        assert len(scale.message) < 256


def test_selector_of_64_labels_is_supported() -> None:
    labels = {f"app.kubernetes.io/label-{index}": "v" * 63 for index in range(64)}
    scale = built_in_scale(deployment({"matchLabels": labels})).scale
    assert isinstance(scale, ScaleTarget)
    assert len(parse_cached(scale.selector).requirements) == 64


def test_cache_of_parsed_selectors_is_limited_by_their_size() -> None:
    cache: Any = parse_cached.cache
    weights = [parse_cached(f"k{number} in ({','.join(map(str, range(1500)))})").weight for number in range(200)]
    assert 2 * sum(weights) > cache.maxsize
    assert 2 * sum(selector.weight for selector in cache.values()) <= cache.maxsize


def test_pod_with_many_labels_is_invalid() -> None:
    labels = {f"label-{index}": "v" for index in range(257)}
    with pytest.raises(ValueError, match="257 labels"):
        decode_pod({"metadata": {"name": "web-1", "labels": labels}})


async def test_discovery_keeps_a_bounded_number_of_groups() -> None:
    class NoGroups:
        async def get(self, _path: str) -> Json:
            raise NotFound("not found")

    client: Any = NoGroups()
    discovery = Discovery(client)
    for index in range(2000):
        with pytest.raises(NoMatch):
            await discovery.resource(f"group-{index}", "Kind")
    with pytest.raises(NoMatch):
        await discovery.resource("g" * 10_000, "Kind")
    assert len(discovery._groups) <= 512
    assert max(map(len, discovery._groups)) < 254
    assert len(discovery._locks) == 0

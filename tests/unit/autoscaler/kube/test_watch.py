"""List and watch through closed streams, expired versions and outages."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest

from autoscaler.kube.errors import Expired, KubeError
from autoscaler.kube.invalid_objects import InvalidObject
from autoscaler.kube.watch import (
    ListWatch,
    ObjectList,
    WatchDecoder,
    WatchEvent,
    WatchEventType,
    WatchItem,
    list_and_watch,
)
from tests.fakes.cluster import Cluster
from tests.waiting import GIVE_UP

ONE = "/api/v1/namespaces/default/configmaps/one"
SOON = timedelta(milliseconds=5)
ALL = ListWatch("/api/v1/namespaces/default/configmaps")


def line(kind: str, **content: Any) -> bytes:
    return json.dumps({"type": kind, "object": content}).encode()


def test_event_is_decoded_and_advances_the_resource_version():
    decoder = WatchDecoder("1")
    content = {"metadata": {"resourceVersion": "2", "name": "one"}}
    assert decoder.decode(line("ADDED", **content)) == WatchEvent(WatchEventType.ADDED, content)
    assert decoder.resource_version == "2"


def test_bookmark_only_advances_the_resource_version():
    decoder = WatchDecoder("1")
    assert decoder.decode(line("BOOKMARK", metadata={"resourceVersion": "7"})) is None
    assert decoder.resource_version == "7"


def test_error_event_with_code_410_raises_expired():
    with pytest.raises(Expired):
        WatchDecoder("1").decode(line("ERROR", code=410, reason="Expired", message="too old resource version"))


def test_line_that_is_not_json_is_an_invalid_object_without_key():
    decoded = WatchDecoder("1").decode(b"upstream connect error")
    assert isinstance(decoded, InvalidObject)
    assert decoded.key == ""


def test_event_with_a_lower_resource_version_raises_expired():
    decoder = WatchDecoder("7")
    with pytest.raises(Expired, match="6 is lower than 7"):
        decoder.decode(line("ADDED", metadata={"resourceVersion": "6", "name": "one"}))


def test_object_that_is_nested_too_deeply_is_invalid_and_known_by_its_key():
    nested = b'{"a":' * 3000 + b"1" + b"}" * 3000
    metadata = b'{"name":"one","namespace":"shop","resourceVersion":"8"}'
    decoder = WatchDecoder("7")
    decoded = decoder.decode(b'{"type":"MODIFIED","object":{"metadata":' + metadata + b',"spec":' + nested + b"}}")
    assert isinstance(decoded, InvalidObject)
    assert (decoded.key, decoder.resource_version) == ("shop/one", "8")


@pytest.fixture
async def api() -> AsyncIterator[Cluster]:
    async with Cluster.serving() as serving:
        serving.put(ONE, {"data": {"is": "1"}})
        yield serving


async def receive(items: AsyncIterator[WatchItem]) -> WatchItem:
    async with asyncio.timeout(GIVE_UP):
        return await anext(items)


def data(item: WatchItem) -> Any:
    match item:
        case ObjectList(objects):
            return [content["data"]["is"] for content in objects]
        case WatchEvent(event_type, content):
            return event_type, content["data"]["is"]


async def test_list_is_followed_by_watch_events(api: Cluster) -> None:
    async with api.client() as client, aclosing(list_and_watch(client, ALL, initial_backoff=SOON)) as items:
        assert data(await receive(items)) == ["1"]
        api.put(ONE, {"data": {"is": "2"}})
        assert data(await receive(items)) == (WatchEventType.MODIFIED, "2")
        api.delete(ONE)
        assert data(await receive(items)) == (WatchEventType.DELETED, "2")


async def test_closed_stream_is_resumed_without_a_new_list(api: Cluster) -> None:
    async with api.client() as client, aclosing(list_and_watch(client, ALL, initial_backoff=SOON)) as items:
        await receive(items)
        api.close_watches()
        api.put(ONE, {"data": {"is": "2"}})
        assert data(await receive(items)) == (WatchEventType.MODIFIED, "2")


async def test_expired_resource_version_causes_a_new_list(api: Cluster) -> None:
    async with api.client() as client, aclosing(list_and_watch(client, ALL, initial_backoff=SOON)) as items:
        assert data(await receive(items)) == ["1"]
        api.expire_watches()
        assert data(await receive(items)) == ["1"]


@pytest.mark.parametrize("code", [503, 403])
async def test_events_during_an_outage_are_received_after_it(api: Cluster, code: int) -> None:
    failures: asyncio.Queue[KubeError] = asyncio.Queue()
    async with (
        api.client() as client,
        aclosing(list_and_watch(client, ALL, initial_backoff=SOON, on_error=failures.put_nowait)) as items,
    ):
        await receive(items)
        api.faults.fail_all_with = code
        api.close_watches()
        waiting = asyncio.create_task(anext(items))
        async with asyncio.timeout(GIVE_UP):
            await failures.get()
            api.put(ONE, {"data": {"is": "2"}})
            api.faults.fail_all_with = 0
            # after a temporary failure the watch is resumed, after any other the collection is listed again
            assert data(await waiting) == ((WatchEventType.MODIFIED, "2") if code == 503 else ["2"])


async def test_failing_first_list_is_retried(api: Cluster) -> None:
    failures: asyncio.Queue[KubeError] = asyncio.Queue()
    api.faults.fail_all_with = 403
    async with (
        api.client() as client,
        aclosing(list_and_watch(client, ALL, initial_backoff=SOON, on_error=failures.put_nowait)) as items,
    ):
        waiting = asyncio.create_task(anext(items))
        async with asyncio.timeout(GIVE_UP):
            await failures.get()
            api.faults.fail_all_with = 0
            assert data(await waiting) == ["1"]


@pytest.mark.looptime
async def test_watch_closed_by_the_server_timeout_restarts_without_backoff(api: Cluster) -> None:
    async with (
        api.client() as client,
        aclosing(list_and_watch(client, ALL, initial_backoff=timedelta(minutes=10))) as items,
    ):
        await anext(items)
        next_item = asyncio.ensure_future(anext(items))
        await asyncio.sleep(2)
        api.close_watches()
        api.put(ONE, {"data": {"is": "2"}})
        async with asyncio.timeout(GIVE_UP):
            assert data(await next_item) == (WatchEventType.MODIFIED, "2")

"""Single hostile lists, watch lines and responses: the informer goes on, and the object is reported."""

import asyncio
import json

import pytest
from prometheus_client import CollectorRegistry

from autoscaler.kube.client import Json
from tests.security.test_watch_objects import Api, content, event, informer_of, until_all_known

pytestmark = pytest.mark.looptime

DEEP = b'{"a":' * 3000 + b"1" + b"}" * 3000
EVIL = json.dumps(content("evil", {})).encode()
GOOD = json.dumps(event(content("good-1", {}))).encode()
LINES = {
    "nested 3,000 levels": b'{"type":"ADDED","object":' + EVIL[:-1] + b',"spec":' + DEEP + b"}}",
    "not JSON": b"upstream connect error or disconnect/reset before headers",
    "not UTF-8": b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}',
    "not an object": b"[1]",
    "unknown type": json.dumps(event(content("evil", {}), "COMPACTED")).encode(),
    "type is a list": b'{"type":[],"object":' + EVIL + b"}",
    "object is null": b'{"type":"ADDED","object":null}',
    "without metadata": b'{"type":"ADDED","object":{}}',
    "without name": b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"200"}}}',
    "version is a number": b'{"type":"ADDED","object":{"metadata":{"name":"evil","resourceVersion":7}}}',
    "version is not decimal": '{"type":"ADDED","object":{"metadata":{"name":"evil","resourceVersion":"²"}}}'.encode(),
    "version of 5,000 digits": b'{"type":"ADDED","object":{"metadata":{"name":"evil","resourceVersion":"'
    + b"1" * 5000
    + b'"}}}',
    "error without code": b'{"type":"ERROR","object":{}}',
    "error with a text as code": b'{"type":"ERROR","object":{"code":"many"}}',
    "nested error": b'{"type":"ERROR","object":' + DEEP + b"}",
    "longer than the limit": b'{"type":"ADDED","object":{"spec":"' + b"x" * 9 * 2**20 + b'"}}',
    "bookmark without version": b'{"type":"BOOKMARK","object":{"metadata":{}}}',
}


def size(content: Json) -> int:
    return len(content)


@pytest.mark.parametrize("name", LINES)
async def test_watch_continues_after_a_hostile_line(name: str) -> None:
    async with informer_of(Api([], [LINES[name], GOOD]), "things", size, CollectorRegistry()) as informer:
        await until_all_known(informer, ["good-1"])


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(b"{}", id="empty object"),
        pytest.param(b'{"metadata":{"resourceVersion":"1"}}', id="without items"),
        pytest.param(b'{"metadata":{"resourceVersion":"1"},"items":"many"}', id="items is a text"),
        pytest.param(b'{"metadata":{},"items":[]}', id="without resourceVersion"),
        pytest.param(b'{"metadata":null,"items":[]}', id="metadata is null"),
        pytest.param(b"[" * 5000, id="nested"),
        pytest.param(b'{"items":[', id="truncated"),
        pytest.param(b"<html>", id="HTML"),
    ],
)
async def test_list_that_is_malformed_is_requested_again(page: bytes) -> None:
    api = Api([json.dumps(content("good-1", {}, "7")).encode()], [], page)
    async with informer_of(api, "things", size, CollectorRegistry()) as informer:
        await until_all_known(informer, ["good-1"])


async def test_objects_listed_beside_a_hostile_one_are_known_and_it_is_reported(caplog) -> None:
    registry = CollectorRegistry()
    items = [json.dumps(content(name, {}, "7")).encode() for name in ("good-1", "good-2")]
    nested = json.dumps(content("evil", {}, "7")).encode()[:-1] + b',"spec":' + DEEP + b"}"
    async with informer_of(Api([items[0], nested, b"{}", b"7", items[1]], []), "things", size, registry) as informer:
        await until_all_known(informer, ["good-1", "good-2"])
    assert registry.get_sample_value("steadyscale_invalid_objects_total", {"resource": "things"}) == 3
    assert next(record.object for record in caplog.records if record.message == "invalid object skipped") == "shop/evil"


async def test_object_that_becomes_invalid_is_removed() -> None:
    line = b'{"type":"MODIFIED","object":' + EVIL[:-1] + b',"spec":' + DEEP + b"}}"
    items = [json.dumps(content(name, {}, "7")).encode() for name in ("evil", "good-0")]
    async with informer_of(Api(items, [line, GOOD]), "things", size, CollectorRegistry()) as informer:
        await until_all_known(informer, ["good-0", "good-1"])
        assert informer.get("shop/evil") is None


async def test_failing_transform_and_listener_affect_only_their_object() -> None:
    notified = []

    def transform(content: Json) -> int:
        if content["metadata"]["name"] == "evil":
            raise RecursionError
        return 1

    def listen(key: str) -> None:
        notified.append(key)
        raise ZeroDivisionError

    lines = [b'{"type":"ADDED","object":' + EVIL + b"}", GOOD]
    async with informer_of(Api([], lines), "things", transform, CollectorRegistry()) as informer:
        informer.add_listener(listen)
        await until_all_known(informer, ["good-1"])
        assert notified == ["shop/good-1"]


async def test_log_lines_about_invalid_objects_are_limited(caplog) -> None:
    lines = [LINES["without name"].replace(b"200", str(200 + index).encode()) for index in range(100)]
    async with informer_of(Api([], [*lines, GOOD]), "things", size, CollectorRegistry()) as informer:
        await until_all_known(informer, ["good-1"])
        await asyncio.sleep(0)
    assert caplog.text.count("invalid object skipped") == 10

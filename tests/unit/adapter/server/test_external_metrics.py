"""Responses with the values of a metric: bytes on the wire, backpressure and the cache of encoded bodies."""

import asyncio
from datetime import timedelta

import pytest
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import RequestHandler

from adapter.config.model import Limits
from adapter.sample import Sample
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.request_context import RequestContext
from autoscaler.values.selector import Selector
from tests.unit.adapter.served import METRIC, NOW, Served, served
from tests.waiting import GIVE_UP

REQUEST = f"GET {METRIC} HTTP/1.1\r\nHost: x\r\nAudit-Id: abc\r\n"


async def send_raw(it: Served, requests: str, responses: int = 1) -> list[tuple[list[str], bytes]]:
    """Send requests on a new connection; return the head's lines and the body of each response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
    writer.write(requests.encode())
    received = []
    for _ in range(responses):
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), GIVE_UP)).decode().split("\r\n")[:-2]
        length = next(int(line.split(": ")[1]) for line in head if line.startswith("Content-Length"))
        received.append((head, await reader.readexactly(length)))
    writer.close()
    return received


@pytest.mark.parametrize(
    ("request_", "status", "headers"),
    [
        pytest.param(REQUEST + "\r\n", "HTTP/1.1 200 OK", [], id="HTTP/1.1"),
        pytest.param(REQUEST + "Connection: close\r\n\r\n", "HTTP/1.1 200 OK", ["Connection: close"], id="close"),
        pytest.param(REQUEST.replace("1.1", "1.0") + "\r\n", "HTTP/1.0 200 OK", [], id="HTTP/1.0"),
        pytest.param(
            REQUEST.replace("1.1", "1.0") + "Connection: keep-alive\r\n\r\n",
            "HTTP/1.0 200 OK",
            ["Connection: keep-alive"],
            id="HTTP/1.0 with keep-alive",
        ),
    ],
)
async def test_head_of_a_response(request_: str, status: str, headers: list[str]):
    async with served() as it:
        it.backend.may_respond.set()
        (((first, *rest), body),) = await send_raw(it, request_)

    assert first == status
    assert sorted(line for line in rest if not line.startswith("Date: ")) == sorted(
        [
            "Audit-Id: abc",
            "Cache-Control: no-cache, private",
            f"Content-Length: {len(body)}",
            "Content-Type: application/json",
            "Server: steadyscale",
            *headers,
        ]
    )
    assert any(line.startswith("Date: ") and line.endswith(" GMT") for line in rest)


async def test_pipelined_requests_are_answered_in_order():
    async with served() as it:
        it.backend.may_respond.set()
        requests = "".join(REQUEST.replace("abc", audit_id) + "\r\n" for audit_id in ("a", "b", "c"))
        responses = await send_raw(it, requests, responses=3)

    audit_ids = [next(line for line in head if line.startswith("Audit-Id")) for head, _ in responses]
    assert audit_ids == ["Audit-Id: a", "Audit-Id: b", "Audit-Id: c"]


async def test_disconnect_before_the_response_is_not_logged_as_an_error(caplog: pytest.LogCaptureFixture):
    async with served() as it:
        _, writer = await asyncio.open_connection("127.0.0.1", it.port)
        writer.write(f"{REQUEST}\r\n".encode())
        await it.backend.queried.wait()
        writer.transport.abort()
        (connection,) = it.server.listeners[0].connections
        while connection.transport is not None:  # noqa: ASYNC110 - until the server has noticed
            await asyncio.sleep(0.001)
        it.backend.may_respond.set()
        response = await it.session.get(METRIC)

        assert response.status == 200
        assert caplog.text == ""


class FakeReader:
    """A reader with one sample, which a test can replace."""

    samples = (Sample(1000, NOW),)

    async def read_samples(self, namespace: str, metric: str, selector: Selector) -> tuple[Sample, ...]:  # noqa: ARG002
        return self.samples

    def names(self, namespace: str) -> tuple[str, ...]:  # noqa: ARG002
        return ("m",)


LARGE_LABEL = "x" * 4_000_000


class LargeReader(FakeReader):
    """A reader with a sample of several megabytes."""

    samples = (Sample(1000, NOW, {"label": LARGE_LABEL}),)


def serve_large_responses(it: Served) -> None:
    handler = ExternalMetrics(LargeReader(), lambda: NOW).read
    it.server._routes._metric = it.server._routes._metric._replace(handler=handler)


def unread_bytes(connection: RequestHandler) -> int:
    """Return the size of the write buffer, which is empty until the client reads too slowly."""
    return connection.transport.get_write_buffer_size() if connection.transport else 0


async def test_slow_reader_gets_no_further_responses_until_it_has_read():
    async with served() as it:
        serve_large_responses(it)
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port, limit=1)
        writer.write(f"{REQUEST}\r\n".encode() * 20)
        while not any(map(unread_bytes, it.server.listeners[0].connections)):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        for _ in range(1000):  # without backpressure, all responses would be written in this time
            await asyncio.sleep(0)

        assert 1 <= it.metric("steadyscale_requests_total", endpoint="metric", code="200") < 10
        reader.feed_eof()
        writer.transport.abort()


async def test_shutdown_waits_for_a_client_that_is_reading_its_response():
    async with served(Limits(drain_timeout=timedelta(seconds=5))) as it:
        serve_large_responses(it)
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port, limit=1)
        writer.write(f"{REQUEST}\r\n".encode())
        assert await reader.readexactly(1) == b"H"
        has_stopped = asyncio.Event()

        async def read_slowly() -> tuple[bytes, bool]:
            await asyncio.sleep(0.2)
            stopped_before_reading = has_stopped.is_set()
            return await reader.read(), stopped_before_reading

        reading = asyncio.create_task(read_slowly())
    has_stopped.set()
    received, stopped_before_reading = await reading
    writer.close()

    assert (len(received) > len(LARGE_LABEL), stopped_before_reading) == (True, False)


async def test_response_during_shutdown_closes_the_connection():
    async with served() as it:
        it.backend.may_respond.set()
        it.server.stopping = True
        ((head, _),) = await send_raw(it, REQUEST + "\r\n")

    assert "Connection: close" in head


async def test_response_has_the_requested_name_and_representation():
    async with served() as it:
        it.backend.may_respond.set()
        names, representations = [], []
        for _ in range(2):
            for metric in (METRIC, METRIC.removesuffix("m") + "M"):
                document = await (await it.session.get(metric)).json()
                names.append(document["items"][0]["metricName"])
            for accept in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
                response = await it.session.get(METRIC, headers={"Accept": accept})
                representations.append((response.content_type, (await response.read())[:4]))
            pretty = await it.session.get(METRIC, params={"pretty": "true"})
            representations.append((pretty.content_type, (await pretty.read())[:4]))

    assert names == ["m", "M"] * 2
    assert representations == 2 * [
        ("application/json", b'{"ki'),
        ("application/yaml", b"kind"),
        ("application/vnd.kubernetes.protobuf", b"k8s\0"),
        ("application/json", b"{\n  "),
    ]


async def body_of(metrics: ExternalMetrics, context: RequestContext) -> bytes:
    body = (await metrics.read(context)).body
    assert isinstance(body, bytes)
    return body


async def test_body_is_encoded_again_only_for_new_samples():
    reader = FakeReader()
    metrics = ExternalMetrics(reader, lambda: NOW)
    context = RequestContext.create(make_mocked_request("GET", METRIC))
    first, second = [await body_of(metrics, context) for _ in range(2)]
    reader.samples = (Sample(2000, NOW),)
    changed = await body_of(metrics, context)

    assert second is first
    assert (b'"value":"1"' in first, b'"value":"2"' in changed) == (True, True)


@pytest.mark.parametrize(
    ("reader", "path"),
    [
        pytest.param(LargeReader(), METRIC, id="large body"),
        pytest.param(FakeReader(), METRIC.replace("default", "x" * 60_000), id="long namespace"),
        pytest.param(
            FakeReader(), f"{METRIC}?labelSelector=a+in+({','.join(map(str, range(1000)))})", id="long selector"
        ),
    ],
)
async def test_large_responses_are_not_cached(reader: FakeReader, path: str):
    metrics = ExternalMetrics(reader, lambda: NOW)
    body = await body_of(metrics, RequestContext.create(make_mocked_request("GET", path)))

    assert b'"value":"1"' in body
    assert len(metrics._bodies) == 0


async def test_number_of_cached_bodies_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("adapter.server.external_metrics._MAX_CACHED_BODIES", 3)
    metrics = ExternalMetrics(FakeReader(), lambda: NOW)
    for number in range(10):
        path = f"{METRIC}?labelSelector=a!=b{number}"
        await metrics.read(RequestContext.create(make_mocked_request("GET", path)))

    assert len(metrics._bodies) == 3

"""A metric's values, written in one piece or by the library: the same answer either way."""

import asyncio
from datetime import timedelta

import pytest
from aiohttp.test_utils import make_mocked_request

from adapter.config.model import Limits
from adapter.sample import Sample
from adapter.server.external_metrics import ExternalMetrics
from adapter.server.request_context import RequestContexts
from autoscaler.values.selector import Selector
from tests.unit.adapter.served import METRIC, NOW, Served, served

ASKED = f"GET {METRIC} HTTP/1.1\r\nHost: x\r\nAudit-Id: abc\r\n"


async def exchanged(it: Served, said: str, answers: int = 1) -> list[tuple[list[str], bytes]]:
    """Send this on a connection of its own; give the head's lines and the body of each answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
    writer.write(said.encode())
    got = []
    for _ in range(answers):
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)).decode().split("\r\n")[:-2]
        length = next(int(line.split(": ")[1]) for line in head if line.startswith("Content-Length"))
        got.append((head, await reader.readexactly(length)))
    writer.close()
    return got


def without_date(head: list[str]) -> list[str]:
    return sorted(line for line in head if not line.startswith("Date: "))


@pytest.mark.parametrize(
    ("said", "status", "more"),
    [
        pytest.param(ASKED + "Connection: close\r\n\r\n", "HTTP/1.1 200 OK", ["Connection: close"], id="the last"),
        pytest.param(ASKED.replace("1.1", "1.0") + "\r\n", "HTTP/1.0 200 OK", [], id="an old HTTP"),
        pytest.param(
            ASKED.replace("1.1", "1.0") + "Connection: keep-alive\r\n\r\n",
            "HTTP/1.0 200 OK",
            ["Connection: keep-alive"],
            id="an old HTTP that stays",
        ),
    ],
)
async def test_it_is_the_same_answer_as_the_library_writes(said: str, status: str, more: list[str]):
    async with served() as it:
        it.backend.may_answer.set()
        ((ours, body),) = await exchanged(it, ASKED + "\r\n")
        ((usual, same),) = await exchanged(it, said)

    assert ours[0] == "HTTP/1.1 200 OK"
    assert sorted([status, *more, *without_date(ours[1:])]) == without_date(usual)
    assert any(line.startswith("Date: ") and line.endswith(" GMT") for line in ours)
    assert body == same


async def test_several_at_once_on_one_connection_are_answered_in_order():
    async with served() as it:
        it.backend.may_answer.set()
        several = "".join(ASKED.replace("abc", name) + "\r\n" for name in ("a", "b", "c"))
        got = await exchanged(it, several, answers=3)

    assert [next(line for line in head if line.startswith("Audit-Id")) for head, _ in got] == [
        "Audit-Id: a",
        "Audit-Id: b",
        "Audit-Id: c",
    ]


async def test_who_has_hung_up_is_not_written_to(caplog: pytest.LogCaptureFixture):
    async with served() as it:
        _, writer = await asyncio.open_connection("127.0.0.1", it.port)
        writer.write(f"{ASKED}\r\n".encode())
        await it.backend.asked.wait()
        writer.transport.abort()
        (connection,) = it.server.listeners[0].connections
        while connection.transport is not None:  # noqa: ASYNC110 - until the server has heard of it
            await asyncio.sleep(0.001)
        it.backend.may_answer.set()
        answer = await it.session.get(METRIC)

        assert answer.status == 200
        assert caplog.text == ""


class Reader:
    """Has one sample, which the test replaces."""

    samples = (Sample(1000, NOW),)

    async def read(self, namespace: str, metric: str, selector: Selector) -> tuple[Sample, ...]:  # noqa: ARG002
        return self.samples

    def names(self, namespace: str) -> tuple[str, ...]:  # noqa: ARG002
        return ("m",)


LARGE = b"x" * 4_000_000


class Large(Reader):
    """Has a sample that takes megabytes to tell."""

    samples = (Sample(1000, NOW, {"label": LARGE.decode()}),)


def answer_at_length(it: Served) -> None:
    """Let the server have a large answer."""
    it.server._routes._metric = it.server._routes._metric._replace(handler=ExternalMetrics(Large(), lambda: NOW).read)


async def test_who_does_not_read_an_answer_gets_no_other():
    async with served() as it:
        answer_at_length(it)
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port, limit=1)
        writer.write(f"{ASKED}\r\n".encode() * 20)
        await asyncio.sleep(0.3)

        assert it.figure("steadyscale_requests_total", endpoint="metric", code="200") < 10
        reader.feed_eof()
        writer.transport.abort()


async def test_who_is_still_reading_an_answer_is_waited_for_on_a_stop():
    async with served(Limits(drain=timedelta(seconds=5))) as it:
        answer_at_length(it)
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port, limit=1)
        writer.write(f"{ASKED}\r\n".encode())
        assert await reader.readexactly(1) == b"H"
        has_stopped = asyncio.Event()

        async def reading() -> tuple[bytes, bool]:
            await asyncio.sleep(0.2)
            was_left_alone = has_stopped.is_set()
            return await reader.read(), was_left_alone

        rest = asyncio.create_task(reading())
    has_stopped.set()
    got, was_left_alone = await rest
    writer.close()

    assert (len(got) > len(LARGE), was_left_alone) == (True, False)


@pytest.mark.parametrize(
    ("reader", "path"),
    [
        pytest.param(Large(), METRIC, id="a large answer"),
        pytest.param(Reader(), METRIC.replace("default", "x" * 60_000), id="a made-up namespace"),
        pytest.param(
            Reader(), f"{METRIC}?labelSelector=a+in+({','.join(map(str, range(1000)))})", id="a made-up selector"
        ),
    ],
)
async def test_what_takes_much_memory_is_told_and_not_kept(reader: Reader, path: str):
    metrics = ExternalMetrics(reader, lambda: NOW)
    told = await metrics.read(RequestContexts().begin(make_mocked_request("GET", path)))

    assert b'"value":"1"' in told.content
    assert metrics._written == {}


async def test_a_server_that_leaves_says_so_with_the_values():
    async with served() as it:
        it.backend.may_answer.set()
        it.server.lifecycle.stopping = True
        ((head, _),) = await exchanged(it, ASKED + "\r\n")

    assert "Connection: close" in head


async def test_the_same_values_are_told_under_the_name_and_in_the_form_that_was_asked_for():
    async with served() as it:
        it.backend.may_answer.set()
        names, forms = [], []
        for _ in range(2):
            for metric in (METRIC, METRIC.removesuffix("m") + "M"):
                told = await (await it.session.get(metric)).json()
                names.append(told["items"][0]["metricName"])
            for accept in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
                answer = await it.session.get(METRIC, headers={"Accept": accept})
                forms.append((answer.content_type, (await answer.read())[:4]))
            pretty = await it.session.get(METRIC, params={"pretty": "true"})
            forms.append((pretty.content_type, (await pretty.read())[:4]))

    assert names == ["m", "M"] * 2
    assert forms == 2 * [
        ("application/json", b'{"ki'),
        ("application/yaml", b"kind"),
        ("application/vnd.kubernetes.protobuf", b"k8s\0"),
        ("application/json", b"{\n  "),
    ]


async def test_new_values_are_written_anew_and_the_same_ones_are_not():
    reader = Reader()
    metrics, exchange = (
        ExternalMetrics(reader, lambda: NOW),
        RequestContexts().begin(make_mocked_request("GET", METRIC)),
    )
    first, again = [(await metrics.read(exchange)).content for _ in range(2)]
    reader.samples = (Sample(2000, NOW),)
    other = (await metrics.read(exchange)).content

    assert again is first
    assert (b'"value":"1"' in first, b'"value":"2"' in other) == (True, True)


async def test_what_was_written_for_made_up_selectors_is_let_go_of(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("adapter.server.external_metrics._MOST_WRITTEN", 3)
    async with served() as it:
        it.backend.may_answer.set()
        for number in range(10):
            await it.session.get(METRIC, params={"labelSelector": f"made!=up{number}"})

        assert 0 < len(it.server._routes._metric.handler.__self__._written) <= 3  # type: ignore[attr-defined]

"""Every way in which Prometheus, or what is in front of it, can fail: the class is right, and so is the recovery."""

import asyncio
import threading
from datetime import timedelta

import pytest

from adapter import errors
from adapter.backends.prometheus.backend import PrometheusBackend
from adapter.backends.settings import CircuitBreakerSettings
from adapter.metrics.read_history import ReadKey
from adapter.metrics.reader import MetricReader
from adapter.rules.query_builder import Query
from adapter.rules.rule import Namespacing
from autoscaler.types.observation import FailureClass
from autoscaler.values.selector import parse
from tests.prometheus.failing_server import Trouble
from tests.prometheus.fixed_responses import backend, reader, rule, until

pytestmark = [pytest.mark.prometheus, pytest.mark.usefixtures("nothing_is_left")]
EVERYTHING = parse("")
QUERY = Query("prometheus", 'sum(depth{namespace="shop"})')
SHORT = timedelta(milliseconds=400)

KINDS = [
    pytest.param("stall", FailureClass.TIMED_OUT, "no response within 0.4s", id="it stalls"),
    pytest.param("drip", FailureClass.TIMED_OUT, "no response within 0.4s", id="it drips"),
    pytest.param("reset", FailureClass.UNREACHABLE, "connection lost", id="it resets the connection"),
    pytest.param("hang-up", FailureClass.UNREACHABLE, "connection lost", id="it hangs up"),
    pytest.param("truncate", FailureClass.UNREACHABLE, "connection lost", id="it hangs up in the middle"),
    pytest.param("garbage", FailureClass.REFUSED, "the response is not one of Prometheus' HTTP API", id="it talks nonsense"),
    pytest.param("302", FailureClass.REFUSED, "HTTP 302 Found (internal)", id="it sends us elsewhere"),
    pytest.param("400", FailureClass.BAD_QUERY, "HTTP 400 Bad Request (internal)", id="400"),
    pytest.param("401", FailureClass.UNAUTHORIZED, "HTTP 401 Unauthorized (internal)", id="401"),
    pytest.param("403", FailureClass.UNAUTHORIZED, "HTTP 403 Forbidden (internal)", id="403"),
    pytest.param("404", FailureClass.REFUSED, "HTTP 404 Not Found (internal)", id="404"),
    pytest.param("422", FailureClass.BAD_QUERY, "HTTP 422 Unprocessable Entity (internal)", id="422"),
    pytest.param("429", FailureClass.REFUSED, "HTTP 429 Too Many Requests (internal)", id="429"),
    pytest.param("500", FailureClass.REFUSED, "HTTP 500 Internal Server Error (internal)", id="500"),
    pytest.param("502", FailureClass.UNREACHABLE, "HTTP 502 Bad Gateway (internal)", id="502"),
    pytest.param("503", FailureClass.UNREACHABLE, "HTTP 503 Service Unavailable (internal)", id="503"),
    pytest.param("504", FailureClass.TIMED_OUT, "no response within 0.4s", id="504"),
]


async def failure(made: PrometheusBackend, query: Query = QUERY, deadline: timedelta = SHORT) -> errors.BackendError:
    with pytest.raises(errors.BackendError) as caught:
        await made.fetch(query, deadline)
    return caught.value


async def is_well(read: MetricReader) -> bool:
    return (await read.read("shop", "m", EVERYTHING)).error is None


@pytest.mark.parametrize(("kind", "expected", "message"), KINDS)
async def test_each_failure_has_its_class_says_the_same_each_time_and_is_over_when_it_is_over(
    hop: Trouble, kind: str, expected: FailureClass, message: str
) -> None:
    async with backend(hop.url) as made:
        for _ in range(2):
            hop.kind = kind
            # Short only where it is waited for: a busy machine may need longer for an answer.
            deadline = SHORT if expected is FailureClass.TIMED_OUT else timedelta(seconds=5)
            told = [await failure(made, deadline=deadline) for _ in range(2)]
            assert [(each.failure, each.message) for each in told] == [(expected, message)] * 2
            hop.kind = ""
            (sample,) = await made.fetch(QUERY, timedelta(seconds=5))
            assert sample.value == 15.5


@pytest.mark.parametrize("kind", ["stall", "drip", "503"])
async def test_a_reader_remembers_since_when_it_fails_and_forgets_at_once(hop: Trouble, kind: str) -> None:
    async with backend(hop.url) as made:
        read = reader(made, rule("sum(depth)", deadline=SHORT, namespace=Namespacing()))
        remembered = read.history.record(ReadKey("shop", "m", EVERYTHING))
        hop.kind = kind
        for count in (1, 2, 3):
            look = await read.read("shop", "m", EVERYTHING)
            assert look.error is not None
            if count == 1:
                first = remembered.first_failure_time
            assert (remembered.failures, remembered.first_failure_time) == (count, first)
        hop.kind = ""
        await until(lambda: is_well(read))
        assert (remembered.failures, remembered.first_failure_time, remembered.failure) == (0, None, None)
        await read.sources.aclose()


@pytest.mark.parametrize("kind", ["stall", "drip"])
async def test_the_deadline_ends_the_wait_and_frees_the_thread_and_the_connection(hop: Trouble, kind: str) -> None:
    async with backend(hop.url, max_connections=2) as made:
        hop.kind = kind
        loop = asyncio.get_running_loop()
        started = loop.time()
        # Six questions over two threads: each wave is thrown out before the next is due.
        told = await asyncio.gather(*(failure(made) for _ in range(6)))
        assert loop.time() - started < 1
        assert {each.failure for each in told} == {FailureClass.TIMED_OUT}
        hop.kind = ""
        assert await made.fetch(QUERY, timedelta(seconds=2))


async def test_who_stops_waiting_ends_the_request_too(hop: Trouble) -> None:
    async with backend(hop.url, max_connections=1) as made:
        hop.kind = "stall"
        asking = asyncio.create_task(made.fetch(QUERY, timedelta(seconds=30)))
        await until(lambda: bool(hop.requests))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        hop.kind = ""
        assert await made.fetch(QUERY, timedelta(seconds=2))  # the only thread is free again


async def test_a_backend_that_is_closed_waits_for_nobody(hop: Trouble) -> None:
    loop = asyncio.get_running_loop()
    async with backend(hop.url) as made:
        hop.kind = "stall"
        asking = asyncio.create_task(made.fetch(QUERY, timedelta(seconds=30)))
        await until(lambda: bool(hop.requests))
        started = loop.time()
    assert loop.time() - started < 1
    with pytest.raises(errors.BackendUnreachable):
        await asking
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("prometheus-")]


async def test_nothing_is_asked_twice_behind_our_back(hop: Trouble) -> None:
    async with backend(hop.url) as made:
        for kind in ("503", "429", "500", "hang-up", "reset"):
            hop.kind, before = kind, hop.requests
            await failure(made, deadline=timedelta(seconds=5))
            assert hop.requests - before == 1, kind


async def test_one_bad_query_keeps_no_other_waiting(hop: Trouble) -> None:
    async with backend(hop.url, circuit_breaker=CircuitBreakerSettings(failure_threshold=2)) as made:
        hop.kind = "503"
        for _ in range(10):
            await failure(made)
        hop.kind = ""
        assert await made.fetch(Query("prometheus", "vector(1)"), timedelta(seconds=5))


async def test_a_server_that_answers_nobody_is_left_in_peace_and_tried_again(hop: Trouble) -> None:
    patience = CircuitBreakerSettings(failure_threshold=3, open_duration=timedelta(milliseconds=300), max_open_duration=timedelta(seconds=1))
    async with backend(hop.url, circuit_breaker=patience, sample_times=False) as made:
        hop.kind = "503"
        told = [await failure(made, Query("prometheus", f"vector({number})")) for number in range(20)]
        assert hop.requests == 3
        assert {(each.failure, each.message) for each in told} == {
            (FailureClass.UNREACHABLE, "HTTP 503 Service Unavailable (internal)")
        }
        hop.kind = ""
        loop = asyncio.get_running_loop()
        started = loop.time()
        while True:
            try:
                await made.fetch(Query("prometheus", "vector(7)"), SHORT)
                break
            except errors.BackendError:
                await asyncio.sleep(0.01)
        assert loop.time() - started < 0.6


async def test_nobody_there_is_unreachable() -> None:
    async with backend("http://127.0.0.1:1") as made:
        assert ((told := await failure(made)).failure, told.message) == (FailureClass.UNREACHABLE, "connection refused")
    async with backend("http://nobody.invalid") as made:
        told = await failure(made)
        assert (told.failure, told.message) == (FailureClass.UNREACHABLE, "host name does not resolve")


async def test_an_answer_with_warnings_is_refused_unless_they_are_accepted(hop: Trouble) -> None:
    hop.kind = "200"
    hop.body = (
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"5"]}]},'
        b'"warnings":["store 3 is not there"]}'
    )
    async with backend(hop.url) as made:
        told = await failure(made)
        assert (told.failure, told.message) == (
            FailureClass.REFUSED,
            "the result may be partial: the response has warnings",
        )
        assert told.detail == "store 3 is not there"
        hop.body = hop.body.replace(b"store 3 is not there", b"PromQL warning: quantile value is odd")
        assert [sample.value for sample in await made.fetch(QUERY, timedelta(seconds=5))] == [5]
    hop.body = hop.body.replace(b"PromQL warning", b"warning")
    async with backend(hop.url, warnings="accept") as made:
        assert [sample.value for sample in await made.fetch(QUERY, timedelta(seconds=5))] == [5]


@pytest.mark.parametrize(
    ("body", "expected", "message"),
    [
        pytest.param(
            b'{"status":"error","errorType":"timeout","error":"query timed out"}',
            FailureClass.TIMED_OUT,
            "no response within 0.4s",
            id="an error in a 200",
        ),
        pytest.param(
            b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{}]}]}}',
            FailureClass.BAD_QUERY,
            "the result is a native histogram, not a number for each series",
            id="a native histogram",
        ),
        pytest.param(
            b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"five"]}]}}',
            FailureClass.REFUSED,
            "the response is not one of Prometheus' HTTP API",
            id="a number that is none",
        ),
        pytest.param(b"", FailureClass.REFUSED, "the response is not one of Prometheus' HTTP API", id="nothing at all"),
        pytest.param(b"{}", FailureClass.REFUSED, "the response is not one of Prometheus' HTTP API", id="an empty object"),
        pytest.param(b"\xff\xfe", FailureClass.REFUSED, "the response is not one of Prometheus' HTTP API", id="no text"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_told_by_its_class(
    hop: Trouble, body: bytes, expected: FailureClass, message: str
) -> None:
    hop.kind, hop.body = "200", body
    async with backend(hop.url) as made:
        told = await failure(made)
    assert (told.failure, told.message) == (expected, message)

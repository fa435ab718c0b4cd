"""Failures of Prometheus or of a proxy in front of it, their error classes, and recovery."""

import asyncio
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
from tests.prometheus.failing_server import FailingProxy
from tests.prometheus.fixed_responses import backend, reader, rule, until

pytestmark = [pytest.mark.prometheus, pytest.mark.usefixtures("no_resource_leaks")]
EVERYTHING = parse("")
QUERY = Query("prometheus", 'sum(depth{namespace="shop"})')
SHORT = timedelta(milliseconds=400)

KINDS = [
    pytest.param("stall", FailureClass.TIMED_OUT, "no response within 0.4s", id="stalled response"),
    pytest.param("drip", FailureClass.TIMED_OUT, "no response within 0.4s", id="one byte at a time"),
    pytest.param("reset", FailureClass.UNREACHABLE, "connection lost", id="connection reset"),
    pytest.param("close", FailureClass.UNREACHABLE, "connection lost", id="connection closed"),
    pytest.param("truncate", FailureClass.UNREACHABLE, "connection lost", id="truncated response"),
    pytest.param("garbage", FailureClass.REFUSED, "invalid response from the Prometheus HTTP API", id="HTML response"),
    pytest.param("302", FailureClass.REFUSED, "HTTP 302 Found (internal)", id="redirect"),
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


async def failure(
    prometheus: PrometheusBackend, query: Query = QUERY, deadline: timedelta = SHORT
) -> errors.BackendError:
    with pytest.raises(errors.BackendError) as caught:
        await prometheus.fetch(query, deadline)
    return caught.value


async def succeeds(read: MetricReader) -> bool:
    return (await read.read("shop", "m", EVERYTHING)).error is None


@pytest.mark.parametrize(("kind", "expected", "message"), KINDS)
async def test_failure_has_a_class_and_a_constant_message_and_ends_with_its_cause(
    proxy: FailingProxy, kind: str, expected: FailureClass, message: str
) -> None:
    async with backend(proxy.url) as prometheus:
        for _ in range(2):
            proxy.failure = kind
            # Short only for timeouts: on a busy machine a response may take longer.
            deadline = SHORT if expected is FailureClass.TIMED_OUT else timedelta(seconds=60)
            failures = [await failure(prometheus, deadline=deadline) for _ in range(2)]
            assert [(error.failure, error.message) for error in failures] == [(expected, message)] * 2
            proxy.failure = ""
            (sample,) = await prometheus.fetch(QUERY, timedelta(seconds=60))
            assert sample.value == 15.5


@pytest.mark.parametrize("kind", ["stall", "drip", "503"])
async def test_read_history_counts_failures_until_the_next_success(proxy: FailingProxy, kind: str) -> None:
    async with backend(proxy.url) as prometheus:
        read = reader(prometheus, rule("sum(depth)", deadline=SHORT, namespace=Namespacing()))
        record = read.history.record(ReadKey("shop", "m", EVERYTHING))
        proxy.failure = kind
        for count in (1, 2, 3):
            trace = await read.read("shop", "m", EVERYTHING)
            assert trace.error is not None
            if count == 1:
                first = record.first_failure_time
            assert (record.failures, record.first_failure_time) == (count, first)
        proxy.failure = ""
        await until(lambda: succeeds(read))
        assert (record.failures, record.first_failure_time, record.failure) == (0, None, None)
        await read.sources.aclose()


@pytest.mark.parametrize("kind", ["stall", "drip"])
async def test_deadline_aborts_the_request_and_frees_its_connection(proxy: FailingProxy, kind: str) -> None:
    async with backend(proxy.url, max_connections=2) as prometheus:
        proxy.failure = kind
        loop = asyncio.get_running_loop()
        started = loop.time()
        # Six requests over two connections: those that wait for a connection time out, too.
        failures = await asyncio.gather(*(failure(prometheus) for _ in range(6)))
        assert loop.time() - started < 1
        assert {error.failure for error in failures} == {FailureClass.TIMED_OUT}
        proxy.failure = ""
        assert await prometheus.fetch(QUERY, timedelta(seconds=2))


async def test_cancelling_the_caller_aborts_the_request(proxy: FailingProxy) -> None:
    async with backend(proxy.url, max_connections=1) as prometheus:
        proxy.failure = "stall"
        fetching = asyncio.create_task(prometheus.fetch(QUERY, timedelta(seconds=30)))
        await until(lambda: bool(proxy.requests))
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        proxy.failure = ""
        assert await prometheus.fetch(QUERY, timedelta(seconds=2))  # the only connection is free


async def test_closing_aborts_running_requests(proxy: FailingProxy) -> None:
    loop = asyncio.get_running_loop()
    async with backend(proxy.url) as prometheus:
        proxy.failure = "stall"
        fetching = asyncio.create_task(prometheus.fetch(QUERY, timedelta(seconds=30)))
        await until(lambda: bool(proxy.requests))
        started = loop.time()
    assert loop.time() - started < 1
    with pytest.raises(errors.BackendUnreachable):
        await fetching


async def test_failed_requests_are_not_retried(proxy: FailingProxy) -> None:
    async with backend(proxy.url) as prometheus:
        for kind in ("503", "429", "500", "close", "reset"):
            proxy.failure, before = kind, proxy.requests
            await failure(prometheus, deadline=timedelta(seconds=60))
            assert proxy.requests - before == 1, kind


async def test_failures_of_one_query_do_not_open_the_circuit(proxy: FailingProxy) -> None:
    async with backend(proxy.url, circuit_breaker=CircuitBreakerSettings(failure_threshold=2)) as prometheus:
        proxy.failure = "503"
        for _ in range(10):
            await failure(prometheus)
        proxy.failure = ""
        assert await prometheus.fetch(Query("prometheus", "vector(1)"), timedelta(seconds=60))


async def test_open_circuit_sends_no_requests_and_closes_after_recovery(proxy: FailingProxy) -> None:
    limits = CircuitBreakerSettings(
        failure_threshold=3, open_duration=timedelta(milliseconds=300), max_open_duration=timedelta(seconds=1)
    )
    async with backend(proxy.url, circuit_breaker=limits, sample_times=False) as prometheus:
        proxy.failure = "503"
        failures = [await failure(prometheus, Query("prometheus", f"vector({number})")) for number in range(20)]
        assert proxy.requests == 3
        assert {(error.failure, error.message) for error in failures} == {
            (FailureClass.UNREACHABLE, "HTTP 503 Service Unavailable (internal)")
        }
        proxy.failure = ""
        loop = asyncio.get_running_loop()
        started = loop.time()
        while True:
            try:
                await prometheus.fetch(Query("prometheus", "vector(7)"), SHORT)
                break
            except errors.BackendError:
                await asyncio.sleep(0.01)
        assert loop.time() - started < 0.6


async def test_unexpected_exception_in_the_probe_does_not_leave_the_circuit_half_open(
    proxy: FailingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = CircuitBreakerSettings(failure_threshold=1, open_duration=timedelta(milliseconds=50))
    async with backend(proxy.url, circuit_breaker=limits) as prometheus:
        proxy.failure = "503"
        await failure(prometheus)
        proxy.failure = ""
        await asyncio.sleep(0.1)
        with monkeypatch.context() as patch:
            patch.setattr("adapter.backends.prometheus.backend.samples", lambda *_: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                await prometheus.fetch(QUERY, timedelta(seconds=60))
        assert await prometheus.fetch(QUERY, timedelta(seconds=60))


async def test_refused_connection_and_unknown_host_are_unreachable() -> None:
    async with backend("http://127.0.0.1:1") as prometheus:
        error = await failure(prometheus)
        assert (error.failure, error.message) == (FailureClass.UNREACHABLE, "connection refused")
    async with backend("http://unknown-host.invalid") as prometheus:
        error = await failure(prometheus)
        assert (error.failure, error.message) == (
            FailureClass.UNREACHABLE,
            "host name 'unknown-host.invalid' does not resolve",
        )


async def test_partial_result_is_rejected_unless_warnings_are_accepted(proxy: FailingProxy) -> None:
    proxy.failure = "200"
    proxy.body = (
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"5"]}]},'
        b'"warnings":["store 3 is unavailable"]}'
    )
    async with backend(proxy.url) as prometheus:
        error = await failure(prometheus)
        assert (error.failure, error.message) == (
            FailureClass.REFUSED,
            "the result may be partial: the response has warnings",
        )
        assert error.detail == "store 3 is unavailable"
        proxy.body = proxy.body.replace(b"store 3 is unavailable", b"PromQL warning: quantile value is odd")
        assert [sample.value for sample in await prometheus.fetch(QUERY, timedelta(seconds=60))] == [5]
    proxy.body = proxy.body.replace(b"PromQL warning", b"warning")
    async with backend(proxy.url, warnings="accept") as prometheus:
        assert [sample.value for sample in await prometheus.fetch(QUERY, timedelta(seconds=60))] == [5]


@pytest.mark.parametrize(
    ("body", "expected", "message"),
    [
        pytest.param(
            b'{"status":"error","errorType":"timeout","error":"query timed out"}',
            FailureClass.TIMED_OUT,
            "no response within 0.4s",
            id="error with status 200",
        ),
        pytest.param(
            b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{}]}]}}',
            FailureClass.BAD_QUERY,
            "the result is a native histogram, not a number for each series",
            id="native histogram",
        ),
        pytest.param(
            b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"five"]}]}}',
            FailureClass.REFUSED,
            "invalid response from the Prometheus HTTP API",
            id="invalid number",
        ),
        pytest.param(b"", FailureClass.REFUSED, "invalid response from the Prometheus HTTP API", id="empty response"),
        pytest.param(b"{}", FailureClass.REFUSED, "invalid response from the Prometheus HTTP API", id="empty object"),
        pytest.param(
            b"\xff\xfe", FailureClass.REFUSED, "invalid response from the Prometheus HTTP API", id="invalid UTF-8"
        ),
    ],
)
async def test_unexpected_response_has_an_error_class(
    proxy: FailingProxy, body: bytes, expected: FailureClass, message: str
) -> None:
    proxy.failure, proxy.body = "200", body
    async with backend(proxy.url) as prometheus:
        error = await failure(prometheus)
    assert (error.failure, error.message) == (expected, message)

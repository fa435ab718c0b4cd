"""Memory of responses of backends: refused early, released at once, bounded when several are large.

The garbage collector is disabled where memory is measured: with the settings of the service it rarely runs, so a
response in a reference cycle would stay in memory for minutes.
"""

import asyncio
import gc
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from weakref import ref

import pytest

from adapter.backends.connection import shared_limits
from adapter.backends.connection.shared_limits import Operation, SharedLimits
from adapter.backends.prometheus.backend import PrometheusBackend
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.backends.settings import CircuitBreakerSettings
from adapter.backends.static import StaticBackend
from adapter.errors import BackendRejected, NoSeries
from adapter.metrics.fetcher import Fetcher, FetchFailure, FetchResult
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.rules.query_builder import Query, snapshot_query
from adapter.rules.rule import Rule, Series
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.values.selector import parse

MIB = 1024 * 1024
TOO_LARGE = "the response is larger than maxResponseBytes"


class RawServer:
    """A server that sends ``head`` and then ``chunks`` in response to every request, and counts what it sent."""

    def __init__(self) -> None:
        self.head = b""
        self.chunks: Callable[[], Iterator[bytes]] = lambda: iter(())
        self.sent = 0
        self.url = ""

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\n" + self.head + b"\r\n")
                for chunk in self.chunks():
                    writer.write(chunk)
                    await writer.drain()
                    self.sent += len(chunk)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client closed the connection
        finally:
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    raw = RawServer()
    listening = await asyncio.start_server(raw.respond, "127.0.0.1", 0)
    raw.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening:
        yield raw


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@asynccontextmanager
async def fetcher(server: RawServer, max_response_bytes: int) -> AsyncIterator[Callable[..., Awaitable[FetchResult]]]:
    settings = Prometheus(url=server.url, max_response_bytes=max_response_bytes, sample_times=False)
    backend = PrometheusBackend("prometheus", settings, lambda: datetime.now(UTC))  # noqa: TID251
    fetching = Fetcher({"prometheus": backend}, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    try:
        yield lambda tenant="": fetching.fetch(Query("prometheus", "depth", tenant=tenant), timedelta(seconds=30))
    finally:
        await backend.aclose()


def error_of(result: FetchResult) -> str:
    assert isinstance(result, FetchFailure)
    assert isinstance(result.error, BackendRejected)
    return result.error.message


@pytest.mark.usefixtures("no_garbage_collection")
async def test_refused_responses_do_not_stay_in_memory(server: RawServer) -> None:
    server.head, server.chunks = b"Connection: close\r\n", lambda: iter([b" " * 50_000] * 80)
    async with fetcher(server, 2 * MIB) as fetch:
        failures = [await fetch()]  # allocates what stays, such as the session
        tracemalloc.start()
        try:
            failures += [await fetch() for _ in range(8)]
            grown, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert {error_of(result) for result in failures} == {TOO_LARGE}
    assert grown < MIB, f"8 refused responses left {grown / MIB:.1f} MiB in memory"


@pytest.mark.usefixtures("no_garbage_collection")
async def test_a_failure_keeps_no_reference_to_the_response(server: RawServer) -> None:
    server.head, server.chunks = b"Content-Length: 2000000\r\n", lambda: iter([b"[" * 50_000] * 40)
    async with fetcher(server, 4 * MIB) as fetch:
        assert isinstance(await fetch(), FetchFailure)
        tracemalloc.start()
        try:
            failures = [await fetch() for _ in range(4)]
            grown, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert {error_of(result) for result in failures} == {"invalid response from the Prometheus HTTP API"}
    # The thread that decoded the last response may not have released it yet.
    assert grown < 4 * MIB, f"4 invalid responses left {grown / MIB:.1f} MiB in memory"


async def test_a_response_is_refused_by_its_content_length_before_its_body_is_read(server: RawServer) -> None:
    server.head, server.chunks = b"Content-Length: 50000000\r\n", lambda: iter([b" " * 50_000] * 1000)
    async with fetcher(server, 20 * MIB) as fetch:
        assert error_of(await fetch()) == TOO_LARGE
    assert server.sent < 10 * MIB  # what the buffers of the sockets hold


async def test_a_response_above_sixteen_mebibytes_is_refused_for_a_tenant(server: RawServer) -> None:
    server.head, server.chunks = b"Content-Length: 17000000\r\n", lambda: iter([b" " * 50_000] * 340)
    async with fetcher(server, 20 * MIB) as fetch:
        assert error_of(await fetch()) == "invalid response from the Prometheus HTTP API"
        refused = "the response is larger than 16 MiB, the limit for queries of a namespace"
        assert error_of(await fetch("shop")) == refused


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_compressed_response_is_refused_before_it_is_decompressed(server: RawServer, encoding: str) -> None:
    text = b" " * (64 * MIB)
    body = gzip.compress(text) if encoding == "gzip" else zlib.compress(text)
    del text
    server.head = b"Content-Encoding: %s\r\nContent-Length: %d\r\n" % (encoding.encode(), len(body))
    server.chunks = lambda: iter((body,))
    async with fetcher(server, MIB) as fetch:
        tracemalloc.start()
        try:
            assert error_of(await fetch()) == TOO_LARGE
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 8 * MIB, f"a response of {len(body)} bytes and a limit of 1 MiB needed {peak / MIB:.1f} MiB"


@pytest.mark.usefixtures("no_garbage_collection")
async def test_a_failed_read_keeps_no_reference_to_its_snapshot() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    rule = Rule("depth", (Series(1, {"queue": "a"}),))
    sources = Sources(Fetcher({"static": StaticBackend(lambda: now)}, lambda: now))
    reader = MetricReader(RuleRegistry((rule,)), sources, lambda: now)
    snapshots = []
    for _ in range(3):
        with pytest.raises(NoSeries):
            await reader.read_samples("shop", "depth", parse("queue=b"))
        snapshots.append(ref(sources.snapshots.peek(snapshot_query(rule))))
        sources.snapshots.drop(snapshot_query(rule))
        await asyncio.sleep(0)
    assert [snapshot() for snapshot in snapshots] == [None, None, None]


async def test_of_responses_above_eight_mebibytes_one_is_in_memory_at_a_time(server: RawServer) -> None:
    count = 4
    server.head = b"Content-Length: %d\r\n" % (12 * MIB)
    server.chunks = lambda: iter([b" " * (MIB // 4)] * 48)
    async with fetcher(server, 16 * MIB) as fetch:
        tracemalloc.start()
        try:
            results = await asyncio.gather(*(fetch() for _ in range(count)))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert {error_of(result) for result in results} == {"invalid response from the Prometheus HTTP API"}
    # One of 12 MiB and three of 8 MiB that wait; growing buffers have a reserve: 43 to 46 MiB, without a limit 53 MiB.
    assert peak < 49 * MIB, f"{count} responses of 12 MiB needed {peak / MIB:.1f} MiB"


async def test_an_operation_reserves_once_and_releases_when_it_ends() -> None:
    limits = SharedLimits()
    first, second = Operation("", limits), Operation("", limits)
    async with second.run():
        async with first.run():
            for size in (MIB, 9 * MIB, 10 * MIB, 3 * MIB):
                await first.reserve(size)
            waiting = asyncio.create_task(second.reserve(9 * MIB))
            await asyncio.sleep(0.01)
            assert (bool(second.waits_for), waiting.done()) == (True, False)
        await waiting
        assert [len(limit.slots._running) for limit in limits.memory] == [1, 1]
    assert [len(limit.slots._running) for limit in limits.memory] == [0, 0]


async def test_a_query_that_waits_for_other_large_responses_says_so() -> None:
    protected = ProtectedCall(CircuitBreakerSettings(), lambda: datetime(2026, 1, 1, tzinfo=UTC))
    is_blocking, end = asyncio.Event(), asyncio.Event()

    async def block() -> None:
        await shared_limits.reserve(9 * MIB)
        is_blocking.set()
        await end.wait()

    blocking = asyncio.create_task(protected.run("first", timedelta(seconds=60), block))
    await is_blocking.wait()
    with pytest.raises(BackendRejected, match="waited until the deadline for other large responses"):
        await protected.run("second", timedelta(seconds=0.05), lambda: shared_limits.reserve(9 * MIB))
    end.set()
    await blocking
    await protected.run("second", timedelta(seconds=60), lambda: shared_limits.reserve(9 * MIB))

"""What all backends share: threads, memory of large responses and circuits. One tenant cannot take them from others."""

import asyncio
import threading
import tracemalloc
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec
import pytest
import re2
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapter.backends.connection import shared_limits
from adapter.backends.http import backend as http_backend
from adapter.backends.http.backend import HttpBackend
from adapter.backends.http.parse import expression_problems
from adapter.backends.http.settings import Http, HttpParameters
from adapter.backends.parameters import parameters
from adapter.backends.prometheus.backend import PrometheusBackend
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.resilience.protected_call import ProtectedCall
from adapter.backends.resilience.rate_limit import OPERATOR
from adapter.backends.settings import CircuitBreakerSettings
from adapter.errors import BackendError, BackendUnreachable, BadQuery
from adapter.rules.query_builder import Query
from adapter.sample import RawSample
from tests.fakes.backend import loop_clock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MIB = 1024 * 1024
LATE = timedelta(seconds=20)


class BlockedParser:
    """Parses responses; those of the path ``/slow`` when ``release`` is called."""

    def __init__(self) -> None:
        self._released = threading.Event()
        self._loop = asyncio.get_running_loop()
        self.is_blocked = asyncio.Event()
        self.blocked = 0

    def samples(self, _body: bytes, wanted: HttpParameters, now: datetime) -> tuple[RawSample, ...]:
        if wanted.path == "/slow":
            self.blocked += 1
            self._loop.call_soon_threadsafe(self.is_blocked.set)
            self._released.wait()
        return (RawSample(1, now),)

    def release(self) -> None:
        self._released.set()


@pytest.fixture
async def parser(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BlockedParser]:
    blocked = BlockedParser()
    monkeypatch.setattr(http_backend, "samples", blocked.samples)
    try:
        yield blocked
    finally:
        blocked.release()


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async def respond(_: web.Request) -> web.Response:
        return web.Response(text="1")

    application = web.Application()
    application.router.add_get("/{path}", respond)
    async with TestServer(application) as server:
        yield str(server.make_url(""))


def query(path: str, tenant: str = "") -> Query:
    return Query("b", f'{{"path":"{path}"}}', tenant=tenant)


async def test_slow_expressions_of_a_tenant_do_not_block_other_backends(url: str, parser: BlockedParser) -> None:
    shared = HttpBackend("shared", Http(url=url, max_connections=40), lambda: NOW)
    other = HttpBackend("other", Http(url=url), lambda: NOW)
    hostile = [asyncio.create_task(shared.fetch(query("/slow", "bad"), LATE)) for _ in range(40)]
    await parser.is_blocked.wait()
    for tenant in ("", "good", "", "good"):
        assert await other.fetch(query("/fast", tenant), LATE)
    assert parser.blocked == 1, "a namespace parses one document at a time"
    parser.release()
    await asyncio.gather(*hostile)
    await shared.aclose()
    await other.aclose()


async def test_expression_that_runs_after_its_deadline_keeps_its_slot(url: str, parser: BlockedParser) -> None:
    backend = HttpBackend("shared", Http(url=url), lambda: NOW)
    first = asyncio.create_task(backend.fetch(query("/slow", "bad"), LATE))
    await parser.is_blocked.wait()
    first.cancel()
    with pytest.raises(BackendError, match="waited until the deadline for a thread"):
        await backend.fetch(query("/slow", "bad"), timedelta(seconds=0.3))
    assert parser.blocked == 1
    await backend.aclose()


# --- memory of large responses ----------------------------------------------------------------------------------------


@pytest.mark.looptime
@pytest.mark.parametrize("size", [2 * MIB, 9 * MIB])
@pytest.mark.parametrize("tenants", [1, 2, 4])
async def test_slow_large_responses_of_tenants_do_not_block_others(size: int, tenants: int) -> None:
    hostile, other = (ProtectedCall(CircuitBreakerSettings(), loop_clock) for _ in range(2))

    async def respond(seconds: float) -> str:
        await shared_limits.reserve(size)
        await asyncio.sleep(seconds)
        return "ok"

    async def read_repeatedly(namespace: str, number: int) -> None:
        while True:
            try:
                await hostile.run(str(number), timedelta(seconds=60), lambda: respond(4.5), namespace=namespace)
            except BackendError:
                await asyncio.sleep(0.1)

    tasks = [asyncio.create_task(read_repeatedly(f"bad{n % tenants}", n)) for n in range(10 * tenants)]
    await asyncio.sleep(0.2)
    for number in range(20):
        for namespace in (OPERATOR, "good"):
            key, deadline = str(number), timedelta(seconds=5)
            assert await other.run(key, deadline, lambda: respond(0.01), namespace=namespace) == "ok"
        await asyncio.sleep(1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# --- caches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["json", "xml", "text"])
def test_expressions_of_tenants_stay_in_no_cache(format_: str) -> None:
    def use(number: int) -> None:
        expression = {
            "json": f"x{number}.[{'a,' * 900}a]",
            "xml": f"x{number}" + "/abc" * 30,
            "text": f"x{number}a{{9}}",
        }
        text = msgspec.json.encode({"path": f"/{'p' * 2000}", "format": format_, "value": expression[format_]}).decode()
        wanted = parameters(Query("b", text), HttpParameters)
        assert list(expression_problems(wanted, "parameters")) == []

    use(0)
    tracemalloc.start()
    try:
        for number in range(80):  # a cached expression has some 100 KiB
            use(number)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < MIB // 2
    assert re2._Regexp._make.cache_info().currsize < 8, "RE2 allocates memory that is not traced"


# --- circuits ---------------------------------------------------------------------------------------------------------


@pytest.mark.looptime
async def test_rejected_queries_of_a_tenant_do_not_keep_the_circuit_of_the_operator_closed() -> None:
    protected = ProtectedCall(CircuitBreakerSettings(failure_threshold=3), loop_clock)

    async def fail(error: BackendError) -> None:
        raise error

    for number in range(10):
        for namespace, error in ((OPERATOR, BackendUnreachable("refused")), ("bad", BadQuery("HTTP 400"))):
            with pytest.raises(BackendError) as raised:
                await protected.run(str(number), LATE, partial(fail, error), namespace=namespace)
    assert raised.value.detail.startswith("circuit breaker open")


# --- logs -------------------------------------------------------------------------------------------------------------


async def test_logs_of_the_warnings_of_a_tenant_are_short_and_rare(caplog: pytest.LogCaptureFixture) -> None:
    async def respond(request: web.Request) -> web.Response:
        form = await request.post()
        text = str(form.get("query") or request.query.get("query"))
        if "timestamp" in text:
            return web.json_response({"status": "error", "errorType": "bad_data", "error": "x"}, status=400)
        result = {"resultType": "vector", "result": []}
        return web.json_response({"status": "success", "data": result, "warnings": [f"partial: {text}"]})

    application = web.Application()
    application.router.add_route("*", "/api/v1/query", respond)
    async with TestServer(application) as server:
        settings = Prometheus(url=str(server.make_url("")), warnings="accept")
        backend = PrometheusBackend("p", settings, lambda: NOW)
        for number in range(20):
            await backend.fetch(Query("p", f'up{{a="{number}{"x" * 1500}"}}', tenant="bad"), LATE)
        of_bad = len(caplog.records)
        await backend.fetch(Query("p", "up"), LATE)
        await backend.aclose()
    assert of_bad == 2, "one line for each message"
    assert len(caplog.records) == 4, "lines of a tenant do not suppress those of the operator"
    assert max(len(str(vars(record))) for record in caplog.records) < 5000

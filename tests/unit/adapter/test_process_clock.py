"""The clock of the process: jumps of the wall clock, alignment with the API server, and durations that depend on it."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from adapter.backends.resilience.circuit_breaker import CircuitBreaker
from adapter.backends.static import StaticBackend
from adapter.debug.trace import trace_view
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.process import ProcessClock, align_clock, clock, keep_aligned
from adapter.rules.rule import Rule, Series
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.values.selector import parse
from tests.fakes.cluster import Cluster

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, HOUR, YEAR = timedelta(seconds=1), timedelta(hours=1), timedelta(days=365)
JUMPS = st.integers(-(10**8), 10**8).map(lambda seconds: timedelta(seconds=seconds))
DATES = ("", "yesterday", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "9" * 40)


@dataclass
class Machine:
    """A machine with a wall clock that can be set."""

    elapsed: timedelta = timedelta(0)
    error: timedelta = timedelta(0)
    jumps: list[None] = field(default_factory=list)

    def wall_clock(self) -> datetime:
        return NOON + self.elapsed + self.error

    def clock(self) -> ProcessClock:
        return ProcessClock(
            self.wall_clock, lambda: 5000 + self.elapsed.total_seconds(), lambda: self.jumps.append(None)
        )


@given(st.lists(st.tuples(st.integers(0, 10**6), JUMPS)))
@hypothesis(max_examples=200, deadline=None)
def test_time_advances_with_the_steady_clock(steps):
    machine = Machine()
    process_clock = machine.clock()
    for milliseconds, jump in steps:
        machine.elapsed += timedelta(milliseconds=milliseconds)
        machine.error += jump
        assert abs(process_clock() - (NOON + machine.elapsed)) <= timedelta(microseconds=2)


def test_jump_is_logged_once_with_its_size(caplog):
    machine = Machine()
    process_clock = machine.clock()
    for jump in (-HOUR, YEAR):
        machine.error += jump
        machine.elapsed += SECOND
        process_clock()
        process_clock()
    assert [record.seconds for record in caplog.records] == [-3600, 31536000]
    assert len(machine.jumps) == 2
    assert process_clock.offset_seconds() == 31536000 - 3600


def test_small_correction_of_the_wall_clock_is_not_logged(caplog):
    machine = Machine()
    process_clock = machine.clock()
    machine.error += SECOND
    assert process_clock() == NOON
    assert caplog.records == []


def test_small_corrections_add_up_to_a_jump():
    machine = Machine()
    process_clock = machine.clock()
    for _ in range(10):
        machine.error -= SECOND
        machine.elapsed += SECOND
        process_clock()
    assert len(machine.jumps) == 5


@pytest.mark.parametrize("error", [-YEAR, -HOUR, HOUR, YEAR], ids=str)
def test_alignment_replaces_a_wrong_time(error, caplog):
    machine = Machine(error=error)
    process_clock = machine.clock()
    process_clock.align(NOON)
    assert process_clock() == NOON
    assert [record.seconds for record in caplog.records] == [error.total_seconds()]
    assert machine.jumps == []


def test_alignment_ignores_the_rounding_of_the_server_time(caplog):
    machine = Machine()
    process_clock = machine.clock()
    process_clock.align(NOON + 0.9 * SECOND)
    assert process_clock() == NOON
    assert caplog.records == []


def test_clock_is_not_aligned_by_a_later_correction_of_the_wall_clock():
    machine = Machine(error=HOUR)
    process_clock = machine.clock()
    process_clock.align(NOON)
    machine.error = timedelta(0)
    machine.elapsed = SECOND
    assert process_clock() == NOON + SECOND
    assert len(machine.jumps) == 1


@pytest.mark.parametrize("jump", [-YEAR, -HOUR, HOUR, YEAR], ids=str)
def test_open_circuit_is_half_open_on_time(jump):
    machine = Machine()
    process_clock = machine.clock()
    breaker = CircuitBreaker(1, open_duration=30 * SECOND, max_open_duration=60 * SECOND)
    breaker.failed(process_clock(), "query")
    machine.error += jump
    machine.elapsed += 29 * SECOND
    assert not breaker.allows(process_clock())
    machine.elapsed += SECOND
    assert breaker.allows(process_clock())


async def test_clock_is_aligned_with_the_date_of_a_response():
    process_clock = ProcessClock(lambda: clock() + HOUR)
    async with Cluster.serving(clock) as cluster:
        await align_clock(process_clock, cluster.connection, attempts=1)
    assert process_clock.is_aligned
    assert abs(process_clock() - clock()) < 10 * SECOND


async def test_denied_request_has_the_time_as_well():
    process_clock = ProcessClock(lambda: clock() - HOUR)
    async with Cluster.serving(clock) as cluster:
        cluster.faults.fail_next(403, times=5)
        await align_clock(process_clock, cluster.connection, attempts=1)
    assert process_clock.is_aligned


async def test_clock_is_aligned_once():
    process_clock = ProcessClock()
    async with Cluster.serving(clock) as cluster:
        for _ in range(3):
            await align_clock(process_clock, cluster.connection, attempts=3)
    assert [request.path for request in cluster.requests] == ["/version"]


@pytest.mark.parametrize("jump", [-YEAR, -HOUR, HOUR, YEAR], ids=str)
async def test_aligned_clock_does_not_follow_a_jump_of_machine_and_api_server(jump):
    machine = Machine()
    process_clock = machine.clock()
    process_clock.align(NOON)
    async with Cluster.serving(lambda: NOON + jump) as cluster:
        machine.error += jump
        machine.elapsed += 2 * SECOND
        await align_clock(process_clock, cluster.connection, attempts=1)
    assert process_clock() == NOON + machine.elapsed


async def test_alignment_is_tried_again_until_the_api_server_responds(monkeypatch):
    monkeypatch.setattr("adapter.process._KEEP_SECONDS", 0.01)
    process_clock = ProcessClock(lambda: clock() + HOUR)
    async with Cluster.serving(clock) as cluster:
        unreachable = replace(cluster.connection, server="http://127.0.0.1:9")
        await align_clock(process_clock, unreachable, attempts=1)
        assert process_clock() - clock() > HOUR - 10 * SECOND
        task = asyncio.create_task(keep_aligned(process_clock, cluster.connection))
        async with asyncio.timeout(60):
            while not process_clock.is_aligned:  # noqa: ASYNC110 - the clock has no event
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait((task,))
    assert abs(process_clock() - clock()) < 10 * SECOND


async def test_unreachable_api_server_leaves_the_wall_clock_in_use(caplog):
    process_clock = ProcessClock()
    async with Cluster.serving(clock) as cluster:
        connection = cluster.connection
    await align_clock(process_clock, connection, attempts=1)
    assert not process_clock.is_aligned
    assert [record.message for record in caplog.records] == ["time of the API server is unknown"]


@pytest.mark.parametrize("date", DATES)
async def test_invalid_date_leaves_the_wall_clock_in_use(date):
    async def respond(_request: web.Request) -> web.Response:
        return web.Response(headers={"Date": date})

    application = web.Application()
    application.router.add_get("/version", respond)
    process_clock = ProcessClock()
    async with TestServer(application) as server, Cluster.serving(clock) as cluster:
        connection = replace(cluster.connection, server=f"http://127.0.0.1:{server.port}")
        await align_clock(process_clock, connection, attempts=1)
    assert abs(process_clock() - clock()) < 10 * SECOND


@pytest.mark.parametrize("jump", [-YEAR, -HOUR, HOUR, YEAR], ids=str)
async def test_jump_changes_no_sample_age_and_no_read_history(jump):
    machine = Machine()
    process_clock = machine.clock()
    fetcher = Fetcher({"static": StaticBackend(process_clock)}, process_clock)
    rule = Rule("queue", (Series(1, {}),), max_sample_age=60 * SECOND)
    reader = MetricReader(RuleRegistry((rule,)), Sources(fetcher), process_clock)
    await reader.read("shop", "queue", parse(""))
    machine.error += jump
    machine.elapsed += 10 * SECOND
    trace = reader.peek("shop", "queue", parse(""))
    assert trace.error is None
    view = trace_view(trace, reader)
    assert view["fetch"]["ageSeconds"] == 10
    assert view["history"]["lastRead"] == "2026-03-01T12:00:00.000Z"

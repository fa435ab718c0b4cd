import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from adapter import errors
from adapter.config.model import TenantLimits
from adapter.label_sets import Labels
from adapter.metrics.fetcher import Fetcher, FetchFailure, FetchResult
from adapter.metrics.snapshot import Snapshot
from adapter.metrics.snapshots import Snapshots
from adapter.metrics.tenant_budgets import TenantBudgets
from adapter.rules.query_builder import Query
from adapter.sample import RawSample
from adapter.telemetry import Telemetry
from tests.fakes.backend import ScriptedBackend, loop_clock, raw
from tests.waiting import GIVE_UP

pytestmark = pytest.mark.looptime

QUERY = Query("b", "q")
INTERVAL, DEADLINE = timedelta(seconds=10), timedelta(seconds=5)


@asynccontextmanager
async def refreshed(
    backend: ScriptedBackend, on_read: Callable[[bool], None] = lambda _: None
) -> AsyncIterator[Snapshots]:
    snapshots = Snapshots(Fetcher({"b": backend}, loop_clock), on_read)
    try:
        yield snapshots
    finally:
        await snapshots.aclose()


def values(result: FetchResult) -> list[float]:
    assert isinstance(result, Snapshot)
    return [series.value for series in result.series]


async def read(snapshots: Snapshots, query: Query = QUERY) -> FetchResult:
    return await snapshots.get(query, INTERVAL, DEADLINE)


async def test_concurrent_first_reads_cause_one_fetch():
    backend = ScriptedBackend(results={"q": (raw(1),)}, delay=2)
    async with refreshed(backend) as snapshots:
        results = await asyncio.gather(*(read(snapshots) for _ in range(1000)))

    assert len({id(result) for result in results}) == 1
    assert backend.fetches["q"] == 1


async def test_shared_query_uses_the_longest_deadline():
    backend = ScriptedBackend(results={"q": (raw(1),)}, delay=8)
    async with refreshed(backend) as snapshots:
        assert isinstance(await snapshots.get(QUERY, INTERVAL, DEADLINE), FetchFailure)
        await snapshots.get(QUERY, INTERVAL, DEADLINE * 2)
        await asyncio.sleep(30)
        assert values(await snapshots.get(QUERY, INTERVAL, DEADLINE)) == [1]


async def test_shared_query_uses_the_shortest_interval():
    backend = ScriptedBackend(results={"q": (raw(1),)})
    async with refreshed(backend) as snapshots:
        for seconds in (30, 5, 10, 5):
            await snapshots.get(QUERY, timedelta(seconds=seconds), DEADLINE)
        backend.fetches.clear()
        await asyncio.sleep(51)

    assert backend.fetches["q"] == 10


async def test_reads_are_counted_as_hits_and_misses():
    telemetry = Telemetry()
    backend = ScriptedBackend(results={"q": (raw(1),)}, delay=2)
    async with refreshed(backend, telemetry.cache_read_counter("snapshots")) as snapshots:
        for _ in range(3):
            await read(snapshots)
    counted = [
        telemetry.registry.get_sample_value("steadyscale_cache_reads_total", {"cache": "snapshots", "result": result})
        for result in ("miss", "hit")
    ]
    assert counted == [1, 2]


async def test_read_of_a_refreshed_query_never_waits():
    backend = ScriptedBackend(results={"q": (raw(1),)}, delay=2)
    loop = asyncio.get_running_loop()
    async with refreshed(backend) as snapshots:
        await read(snapshots)
        for _ in range(100):
            await asyncio.sleep(0.7)
            before = loop.time()
            await read(snapshots)
            assert loop.time() == before

    assert 7 <= backend.fetches["q"] <= 9


async def test_read_with_a_shorter_interval_reschedules_the_next_fetch():
    backend = ScriptedBackend(results={"q": (raw(1),)})
    loop = asyncio.get_running_loop()
    async with refreshed(backend) as snapshots:
        await snapshots.get(QUERY, timedelta(minutes=5), DEADLINE)
        await asyncio.sleep(100)
        for _ in range(10):
            before = loop.time()
            async with asyncio.timeout(1):
                await snapshots.get(QUERY, INTERVAL, DEADLINE)
            assert loop.time() == before
            await asyncio.sleep(10)

    assert 10 <= backend.fetches["q"] <= 12


async def test_idle_query_is_dropped_and_fetched_on_the_next_read():
    backend = ScriptedBackend(results={"q": (raw(1),)})
    async with refreshed(backend) as snapshots:
        await read(snapshots)
        await asyncio.sleep(3600)
        fetches = backend.fetches["q"]
        assert fetches < 10
        assert snapshots.peek(QUERY) is None

        backend.results["q"] = (raw(2),)
        assert values(await read(snapshots)) == [2]
        assert backend.fetches["q"] == fetches + 1


async def test_failure_replaces_the_snapshot_and_is_retried_soon():
    backend = ScriptedBackend(results={"q": (raw(1),)})
    async with refreshed(backend) as snapshots:
        await read(snapshots)
        backend.results["q"] = errors.BackendRejected("no")
        await asyncio.sleep(10.5)
        failed = await read(snapshots)
        assert isinstance(failed, FetchFailure)

        backend.results["q"] = (raw(3),)
        await asyncio.sleep(1)
        assert values(await read(snapshots)) == [3]


async def test_failing_query_is_retried_with_backoff_up_to_the_interval():
    backend = ScriptedBackend(results={"q": errors.BackendUnreachable("gone")})
    async with refreshed(backend) as snapshots:
        for _ in range(600):
            await asyncio.sleep(0.1)
            await read(snapshots)

    assert 8 <= backend.fetches["q"] <= 10  # after 0, 1, 3, 7, 15, 25, 35 … seconds


async def test_cancelled_read_does_not_cancel_the_fetch():
    backend = ScriptedBackend(results={"q": (raw(1),)}, delay=2)
    async with refreshed(backend) as snapshots:
        cancelled, waiting = asyncio.create_task(read(snapshots)), asyncio.create_task(read(snapshots))
        await asyncio.sleep(1)
        cancelled.cancel()
        assert values(await waiting) == [1]

    with contextlib.suppress(asyncio.CancelledError):
        await cancelled
    assert backend.fetches["q"] == 1


async def test_fetch_that_exceeds_the_deadline_is_a_timeout():
    backend = ScriptedBackend(delay=60)
    async with refreshed(backend) as snapshots:
        failed = await read(snapshots)

    assert isinstance(failed, FetchFailure)
    assert isinstance(failed.error, errors.BackendTimeout)
    assert failed.duration == DEADLINE


async def test_query_to_an_unknown_backend_fails():
    async with refreshed(ScriptedBackend()) as snapshots:
        failed = await read(snapshots, Query("elsewhere", "q"))

    assert isinstance(failed, FetchFailure)
    assert failed.error.message == "backend 'elsewhere' is not configured"


async def test_unexpected_exception_of_a_backend_is_logged_and_not_exposed(caplog: pytest.LogCaptureFixture):
    backend = ScriptedBackend(results={"q": ZeroDivisionError("a secret"), "other": (raw(1),)})
    async with refreshed(backend) as snapshots:
        failed = await read(snapshots)
        assert values(await read(snapshots, Query("b", "other"))) == [1]

    assert isinstance(failed, FetchFailure)
    assert "secret" not in failed.error.message
    assert "unexpected error in a backend" in caplog.text


async def test_listeners_are_called_only_for_changed_series():
    backend = ScriptedBackend(results={"q": (raw(1, n="a"), raw(float("nan"), n="b"))})
    changes: list[object] = []
    async with refreshed(backend) as snapshots:
        stop = snapshots.add_listener(lambda key, changed: changes.append((key, changed)))
        await read(snapshots)
        await asyncio.sleep(25)
        assert changes == []

        backend.results["q"] = (raw(1, n="a"), raw(2, n="b"))
        await asyncio.sleep(10)
        assert changes == [(QUERY.key, ({"n": "b"},))]

        backend.results["q"] = errors.BackendRejected("no")
        await asyncio.sleep(10)
        assert changes[1:] == [(QUERY.key, None)]

        stop()
        backend.results["q"] = ()
        await asyncio.sleep(2)
        assert len(changes) == 2


async def test_many_changed_series_are_notified_in_parts():
    backend = ScriptedBackend(results={"q": tuple(raw(1, n=str(number)) for number in range(4500))})
    parts: list[tuple[Labels, ...]] = []
    async with refreshed(backend) as snapshots:
        snapshots.add_listener(lambda _key, changed: parts.append(changed or ()))
        await read(snapshots)
        backend.results["q"] = tuple(raw(2, n=str(number)) for number in range(4500))
        await asyncio.sleep(15)

    assert [len(part) for part in parts] == [2000, 2000, 500]
    assert [labels["n"] for part in parts for labels in part] == [*map(str, range(4500))]


def fail(_key: object, _changed: object) -> None:
    raise ZeroDivisionError


async def test_failing_listener_does_not_stop_the_refresh(caplog: pytest.LogCaptureFixture):
    backend, changes = ScriptedBackend(results={"q": (raw(1),)}), []
    async with refreshed(backend) as snapshots:
        snapshots.add_listener(fail)
        snapshots.add_listener(lambda key, _changed: changes.append(key))
        await read(snapshots)
        for value in (2, 3):
            backend.results["q"] = (raw(value),)
            await asyncio.sleep(15)
            async with asyncio.timeout(GIVE_UP):
                assert values(await read(snapshots)) == [value]

    assert changes == [QUERY.key] * 2
    assert "snapshot listener failed" in caplog.text


async def test_read_that_waits_for_a_dropped_query_gets_a_failure():
    backend = ScriptedBackend(delay=3)
    async with refreshed(backend) as snapshots:
        waiting = asyncio.create_task(read(snapshots))
        await asyncio.sleep(1)
        snapshots.drop(QUERY)
        failed = await waiting

    assert isinstance(failed, FetchFailure)


async def test_closing_ends_all_tasks():
    backend = ScriptedBackend(results={"q": (raw(1),)})
    async with refreshed(backend) as snapshots:
        await read(snapshots)

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_fetches_are_counted_by_result():
    backend = ScriptedBackend(results={"q": (raw(1),), "bad": errors.BadQuery("parse error")}, delay=0.25)
    telemetry = Telemetry()
    fetcher = Fetcher({"b": backend}, loop_clock, telemetry.record_query)
    for text in ("q", "bad", "q"):
        await fetcher.fetch(Query("b", text), DEADLINE)

    assert (
        telemetry.registry.get_sample_value("steadyscale_backend_queries_total", {"backend": "b", "result": "ok"}) == 2
    )
    assert (
        telemetry.registry.get_sample_value(
            "steadyscale_backend_queries_total", {"backend": "b", "result": "bad query"}
        )
        == 1
    )
    assert telemetry.registry.get_sample_value(
        "steadyscale_backend_query_duration_seconds_sum", {"backend": "b"}
    ) == pytest.approx(0.75)


class BatchingBackend(ScriptedBackend):
    """A backend that sends queries in batches."""

    aligned = True

    def __init__(self) -> None:
        super().__init__(results={f"q{number}": (raw(number),) for number in range(50)})
        self.times: list[float] = []

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        self.times.append(asyncio.get_running_loop().time())
        return await super().fetch(query, deadline)


async def test_queries_of_a_batching_backend_are_fetched_at_the_same_times():
    backend = BatchingBackend()
    async with refreshed(backend) as snapshots:
        await asyncio.sleep(3)
        for number in range(50):  # read for the first time one after another, over some seconds
            await read(snapshots, Query("b", f"q{number}"))
            await asyncio.sleep(0.1)
        for _ in range(200):
            await asyncio.gather(*(read(snapshots, Query("b", f"q{number}")) for number in range(50)))
            await asyncio.sleep(0.25)
    after = [time for time in backend.times if time > 10.5]
    assert {round(time % 10, 3) for time in after} == {0.0}
    assert len({round(time) for time in after}) == 4  # at 20, 30, 40, 50
    assert len(after) == 4 * 50


async def test_failure_of_a_batching_backend_is_retried_soon():
    backend = BatchingBackend()
    backend.results["q0"] = errors.BackendRejected("no")
    async with refreshed(backend) as snapshots:
        await asyncio.sleep(3)
        await read(snapshots, Query("b", "q0"))
        backend.results["q0"] = (raw(7),)
        await asyncio.sleep(1.1)
        assert values(await read(snapshots, Query("b", "q0"))) == [7]
        await asyncio.sleep(7)
        await read(snapshots, Query("b", "q0"))
    assert [round(time, 3) for time in backend.times] == [3, 4, 10]


@asynccontextmanager
async def adaptive(backend: ScriptedBackend, budgets: TenantBudgets | None = None) -> AsyncIterator[Snapshots]:
    fetcher = Fetcher({"b": backend}, loop_clock, budgets=budgets, has_adaptive_interval=lambda name: name == "b")
    snapshots = Snapshots(fetcher)
    try:
        yield snapshots
    finally:
        await snapshots.aclose()


@pytest.mark.parametrize(("delay", "fetches"), [(0.01, 16), (0.2, 7), (2, 5)])
async def test_a_slower_query_without_a_configured_interval_is_sent_less_often(delay: float, fetches: int):
    backend = ScriptedBackend(results={"q": (raw(1),)}, delay=delay)
    async with adaptive(backend) as snapshots:
        for _ in range(61):
            await snapshots.get(QUERY, None, DEADLINE)
            await asyncio.sleep(1)

    assert backend.fetches["q"] == pytest.approx(fetches, abs=1)


async def test_adaptive_intervals_of_a_tenant_stay_within_its_budget():
    backend = ScriptedBackend()
    limits = TenantLimits(queries_per_minute=60)
    async with adaptive(backend, TenantBudgets(lambda: limits)) as snapshots:
        queries = [Query("b", str(number), tenant="shop") for number in range(8)]
        other = Query("b", "other", tenant="bank")
        for _ in range(2):
            for query in (*queries, other):
                await snapshots.get(query, None, DEADLINE)
            await asyncio.sleep(16)
        assert {snapshots.interval(query) for query in queries} == {timedelta(seconds=10)}
        assert snapshots.interval(other) == timedelta(seconds=4)

        for query in queries[1:]:
            snapshots.drop(query)
        await asyncio.sleep(16)
        assert snapshots.interval(queries[0]) == timedelta(seconds=4)
        assert snapshots.interval(queries[1]) is None


async def test_a_failing_query_is_retried_at_its_last_adaptive_interval():
    backend = ScriptedBackend(results={"q": errors.BackendRejected("no")})
    async with adaptive(backend) as snapshots:
        for _ in range(60):
            await snapshots.get(QUERY, None, DEADLINE)
            await asyncio.sleep(1)

    assert backend.fetches["q"] == pytest.approx(17, abs=1)  # after 1, 2 and 4 seconds, then every 4

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from adapter import errors
from adapter.metrics.fetcher import Failed, Fetcher, Outcome
from adapter.metrics.snapshot import Snapshot
from adapter.metrics.snapshots import Snapshots
from adapter.rules.query_builder import Query
from adapter.sample import RawSample
from adapter.telemetry import Telemetry
from tests.fakes.backend import ScriptedBackend, loop_clock, raw

pytestmark = pytest.mark.looptime

QUERY = Query("b", "q")
INTERVAL, DEADLINE = timedelta(seconds=10), timedelta(seconds=5)


@asynccontextmanager
async def kept(backend: ScriptedBackend) -> AsyncIterator[Snapshots]:
    snapshots = Snapshots(Fetcher({"b": backend}, loop_clock))
    try:
        yield snapshots
    finally:
        await snapshots.aclose()


def values(outcome: Outcome) -> list[float]:
    assert isinstance(outcome, Snapshot)
    return [row.value for row in outcome.rows]


async def read(snapshots: Snapshots, query: Query = QUERY) -> Outcome:
    return await snapshots.get(query, INTERVAL, DEADLINE)


async def test_a_crowd_costs_one_fetch():
    backend = ScriptedBackend(rows={"q": (raw(1),)}, takes=2)
    async with kept(backend) as snapshots:
        outcomes = await asyncio.gather(*(read(snapshots) for _ in range(1000)))

    assert len({id(outcome) for outcome in outcomes}) == 1
    assert backend.asked["q"] == 1


async def test_of_two_rules_that_ask_the_same_the_more_patient_decides_how_long_it_may_take():
    backend = ScriptedBackend(rows={"q": (raw(1),)}, takes=8)
    async with kept(backend) as snapshots:
        assert isinstance(await snapshots.get(QUERY, INTERVAL, DEADLINE), Failed)
        await snapshots.get(QUERY, INTERVAL, DEADLINE * 2)
        await asyncio.sleep(30)
        assert values(await snapshots.get(QUERY, INTERVAL, DEADLINE)) == [1]


async def test_of_several_rules_that_ask_the_same_the_hastiest_decides_how_often():
    backend = ScriptedBackend(rows={"q": (raw(1),)})
    async with kept(backend) as snapshots:
        for seconds in (30, 5, 10, 5):
            await snapshots.get(QUERY, timedelta(seconds=seconds), DEADLINE)
        backend.asked.clear()
        await asyncio.sleep(51)

    assert backend.asked["q"] == 10


async def test_it_is_counted_whether_an_answer_was_at_hand():
    telemetry = Telemetry()
    async with kept(ScriptedBackend(rows={"q": (raw(1),)}, takes=2)) as snapshots:
        snapshots.watch = telemetry.reading("snapshots")
        for _ in range(3):
            await read(snapshots)
    counted = [
        telemetry.registry.get_sample_value("steadyscale_cache_reads_total", {"cache": "snapshots", "result": result})
        for result in ("miss", "hit")
    ]
    assert counted == [1, 2]


async def test_a_reader_never_waits_while_someone_keeps_reading():
    backend = ScriptedBackend(rows={"q": (raw(1),)}, takes=2)
    loop = asyncio.get_running_loop()
    async with kept(backend) as snapshots:
        await read(snapshots)
        for _ in range(100):
            await asyncio.sleep(0.7)
            before = loop.time()
            await read(snapshots)
            assert loop.time() == before

    assert 7 <= backend.asked["q"] <= 9


async def test_who_reads_more_often_need_not_wait_for_who_reads_seldom():
    backend = ScriptedBackend(rows={"q": (raw(1),)})
    loop = asyncio.get_running_loop()
    async with kept(backend) as snapshots:
        await snapshots.get(QUERY, timedelta(minutes=5), DEADLINE)
        await asyncio.sleep(100)
        for _ in range(10):
            before = loop.time()
            async with asyncio.timeout(1):
                await snapshots.get(QUERY, INTERVAL, DEADLINE)
            assert loop.time() == before
            await asyncio.sleep(10)

    assert 10 <= backend.asked["q"] <= 12


async def test_an_idle_query_is_let_go_and_comes_back_at_once():
    backend = ScriptedBackend(rows={"q": (raw(1),)})
    async with kept(backend) as snapshots:
        await read(snapshots)
        await asyncio.sleep(3600)
        resting = backend.asked["q"]
        assert resting < 10
        assert snapshots.peek(QUERY) is None

        backend.rows["q"] = (raw(2),)
        assert values(await read(snapshots)) == [2]
        assert backend.asked["q"] == resting + 1


async def test_a_failure_replaces_what_was_known_and_is_tried_again_soon():
    backend = ScriptedBackend(rows={"q": (raw(1),)})
    async with kept(backend) as snapshots:
        await read(snapshots)
        backend.rows["q"] = errors.BackendRejected("no")
        await asyncio.sleep(10.5)
        failed = await read(snapshots)
        assert isinstance(failed, Failed)

        backend.rows["q"] = (raw(3),)
        await asyncio.sleep(1)
        assert values(await read(snapshots)) == [3]


async def test_a_dead_backend_is_asked_less_and_less_but_at_least_every_interval():
    backend = ScriptedBackend(rows={"q": errors.BackendUnreachable("gone")})
    async with kept(backend) as snapshots:
        for _ in range(600):
            await asyncio.sleep(0.1)
            await read(snapshots)

    assert 8 <= backend.asked["q"] <= 10  # after 0, 1, 3, 7, 15, 25, 35 … seconds


async def test_who_leaves_early_spoils_it_for_nobody():
    backend = ScriptedBackend(rows={"q": (raw(1),)}, takes=2)
    async with kept(backend) as snapshots:
        impatient, patient = asyncio.create_task(read(snapshots)), asyncio.create_task(read(snapshots))
        await asyncio.sleep(1)
        impatient.cancel()
        assert values(await patient) == [1]

    with contextlib.suppress(asyncio.CancelledError):
        await impatient
    assert backend.asked["q"] == 1


async def test_a_backend_that_takes_too_long_has_timed_out():
    backend = ScriptedBackend(takes=60)
    async with kept(backend) as snapshots:
        failed = await read(snapshots)

    assert isinstance(failed, Failed)
    assert isinstance(failed.error, errors.BackendTimeout)
    assert failed.took == DEADLINE


async def test_a_backend_that_is_not_there_is_said_not_to_be():
    async with kept(ScriptedBackend()) as snapshots:
        failed = await read(snapshots, Query("elsewhere", "q"))

    assert isinstance(failed, Failed)
    assert failed.error.message == "there is no backend of that name"


async def test_a_bug_in_one_backend_is_its_own_and_is_logged(caplog: pytest.LogCaptureFixture):
    backend = ScriptedBackend(rows={"q": ZeroDivisionError("a secret"), "other": (raw(1),)})
    async with kept(backend) as snapshots:
        failed = await read(snapshots)
        assert values(await read(snapshots, Query("b", "other"))) == [1]

    assert isinstance(failed, Failed)
    assert "secret" not in failed.error.message
    assert "nobody foresaw" in caplog.text


async def test_listeners_hear_of_changes_and_only_of_those():
    backend = ScriptedBackend(rows={"q": (raw(1, n="a"), raw(float("nan"), n="b"))})
    heard: list[object] = []
    async with kept(backend) as snapshots:
        stop = snapshots.tell(lambda key, changed: heard.append((key, changed)))
        await read(snapshots)
        await asyncio.sleep(25)
        assert heard == []

        backend.rows["q"] = (raw(1, n="a"), raw(2, n="b"))
        await asyncio.sleep(10)
        assert heard == [(QUERY.key, (raw(2, n="b"),))]

        backend.rows["q"] = errors.BackendRejected("no")
        await asyncio.sleep(10)
        assert heard[1:] == [(QUERY.key, None)]

        stop()
        backend.rows["q"] = ()
        await asyncio.sleep(2)
        assert len(heard) == 2


async def test_a_listener_that_fails_ends_nothing_but_its_own_hearing(caplog: pytest.LogCaptureFixture):
    backend, heard = ScriptedBackend(rows={"q": (raw(1),)}), []
    async with kept(backend) as snapshots:
        snapshots.tell(lambda _key, _difference: 1 / 0)
        snapshots.tell(lambda key, _difference: heard.append(key))
        await read(snapshots)
        for value in (2, 3):
            backend.rows["q"] = (raw(value),)
            await asyncio.sleep(15)
            async with asyncio.timeout(10):
                assert values(await read(snapshots)) == [value]

    assert heard == [QUERY.key] * 2
    assert "who was told of new values failed" in caplog.text


async def test_who_waits_for_a_query_whose_rule_goes_is_told_so():
    backend = ScriptedBackend(takes=3)
    async with kept(backend) as snapshots:
        waiting = asyncio.create_task(read(snapshots))
        await asyncio.sleep(1)
        snapshots.forget(QUERY)
        failed = await waiting

    assert isinstance(failed, Failed)


async def test_nothing_is_left_running_after_closing():
    backend = ScriptedBackend(rows={"q": (raw(1),)})
    async with kept(backend) as snapshots:
        await read(snapshots)

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_each_question_is_counted_with_what_came_of_it():
    backend = ScriptedBackend(rows={"q": (raw(1),), "bad": errors.BadQuery("parse error")}, takes=0.25)
    telemetry = Telemetry()
    fetcher = Fetcher({"b": backend}, loop_clock)
    fetcher.watch = telemetry.fetched
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


class Together(ScriptedBackend):
    """A backend that sends many questions as one."""

    aligned = True

    def __init__(self) -> None:
        super().__init__(rows={f"q{number}": (raw(number),) for number in range(50)})
        self.times: list[float] = []

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        self.times.append(asyncio.get_running_loop().time())
        return await super().fetch(query, deadline)


async def test_where_questions_go_out_together_they_are_due_on_the_same_beat():
    backend = Together()
    async with kept(backend) as snapshots:
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


async def test_a_failure_is_tried_again_soon_also_where_questions_go_out_together():
    backend = Together()
    backend.rows["q0"] = errors.BackendRejected("no")
    async with kept(backend) as snapshots:
        await asyncio.sleep(3)
        await read(snapshots, Query("b", "q0"))
        backend.rows["q0"] = (raw(7),)
        await asyncio.sleep(1.1)
        assert values(await read(snapshots, Query("b", "q0"))) == [7]
        await asyncio.sleep(7)
        await read(snapshots, Query("b", "q0"))
    assert [round(time, 3) for time in backend.times] == [3, 4, 10]

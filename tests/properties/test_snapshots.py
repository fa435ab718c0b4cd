"""Properties of snapshots: an indexed selection equals a full scan; a query is never fetched twice concurrently."""

import asyncio
from datetime import timedelta

import looptime
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from adapter import errors
from adapter.metrics.fetcher import Fetcher, FetchFailure
from adapter.metrics.query_cache import QueryCache
from adapter.metrics.snapshot import Snapshot
from adapter.metrics.snapshots import Snapshots
from adapter.rules.query_builder import Query
from adapter.sample import RawSample
from autoscaler.values.requirement import Requirement
from autoscaler.values.selector import Selector
from tests.fakes.backend import BEGINNING, ScriptedBackend, loop_clock, raw

KEYS = st.sampled_from(["a", "b", "namespace", "c.d/e"])
VALUES = st.sampled_from(["", "1", "2", "x", 'x"} or {', "é"])
HOSTILE = st.text(max_size=4)
LABELS = st.dictionaries(KEYS, VALUES | HOSTILE, max_size=4)
SERIES = st.lists(st.builds(RawSample, st.floats(), st.just(BEGINNING), LABELS), max_size=30).map(tuple)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(["=", "==", "!=", "in", "notin", "exists", "!", "gt", "lt"]))
    if operator in {"exists", "!"}:
        return Requirement(draw(KEYS), operator)
    if operator in {"gt", "lt"}:
        return Requirement(draw(KEYS), operator, (str(draw(st.integers(-2, 3))),))
    count = (1, 1) if operator in {"=", "==", "!="} else (1, 4)
    return Requirement(draw(KEYS), operator, tuple(draw(st.lists(VALUES, min_size=count[0], max_size=count[1]))))


SELECTORS = st.lists(requirements(), max_size=4).map(Selector)


@given(SERIES, SERIES, SELECTORS, st.sampled_from(["", "namespace"]), VALUES)
def test_indexed_selection_equals_a_full_scan(before, series, selector, label, value):
    expected = [one for one in series if selector.matches(one.labels) and (not label or one.labels.get(label) == value)]
    previous = Snapshot(before, BEGINNING)
    previous.select(selector, label, value)
    snapshot = Snapshot(series, BEGINNING, previous=previous)

    for _ in range(2):  # the second time with the indexes of the first
        selected = snapshot.select(selector, label, value)
        assert sorted(map(id, selected)) == sorted(map(id, expected))


class Reading(RuleBasedStateMachine):
    """Reads that start and are cancelled, on a backend whose delay and results change."""

    TEXTS = st.sampled_from(["p", "q", "r"])

    def __init__(self) -> None:
        super().__init__()
        self.loop = looptime.patch_event_loop(asyncio.SelectorEventLoop(), noop_cycles=100)
        self.backend = ScriptedBackend()
        fetcher = Fetcher({"b": self.backend}, loop_clock)
        self.snapshots, self.cache = Snapshots(fetcher), QueryCache(fetcher)
        self.reads: list[asyncio.Task] = []

    @rule(text=TEXTS, templated=st.booleans())
    def start_read(self, text: str, *, templated: bool) -> None:
        source, backend_text = (self.cache, f"template {text}") if templated else (self.snapshots, text)
        query = Query("b", backend_text)
        self.reads.append(self.loop.create_task(source.get(query, timedelta(seconds=10), timedelta(seconds=5))))
        self.loop.run_until_complete(asyncio.sleep(0))

    @rule(seconds=st.sampled_from([0.0, 0.3, 1.0, 4.0, 10.0, 61.0, 600.0]))
    def advance_time(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    @rule(seconds=st.sampled_from([0.0, 0.5, 4.9, 5.1, 20.0]))
    def set_delay(self, seconds: float) -> None:
        self.backend.delay = seconds

    @rule(text=TEXTS, value=st.none() | st.integers(0, 9))
    def set_result(self, text: str, value: int | None) -> None:
        result = errors.BackendRejected("no") if value is None else (raw(float(value)),)
        self.backend.results[text] = self.backend.results[f"template {text}"] = result

    @rule()
    def cancel_read(self) -> None:
        if self.reads:
            self.reads.pop().cancel()
            self.loop.run_until_complete(asyncio.sleep(0))

    @rule(text=TEXTS)
    def drop_query(self, text: str) -> None:
        async def drop() -> None:
            self.snapshots.drop(Query("b", text))

        self.loop.run_until_complete(drop())

    @invariant()
    def query_has_one_fetch_at_a_time(self) -> None:
        assert all(count == 1 for count in self.backend.max_concurrent.values())

    @invariant()
    def finished_reads_have_a_result(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(0))
        for read in [read for read in self.reads if read.done()]:
            self.reads.remove(read)
            assert isinstance(read.result(), Snapshot | FetchFailure)

    def teardown(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(16))
        assert all(read.done() for read in self.reads)
        self.loop.run_until_complete(self.snapshots.aclose())
        self.loop.run_until_complete(self.cache.aclose())
        self.loop.run_until_complete(asyncio.sleep(0))
        assert asyncio.all_tasks(self.loop) == set()
        self.loop.close()


Reading.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestReading = Reading.TestCase

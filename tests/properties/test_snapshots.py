"""Laws of snapshots: choosing by index is choosing by looking at all; no query is ever fetched twice at a time."""

import asyncio
from datetime import timedelta

import looptime
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from adapter import errors
from adapter.metrics.fetcher import Failed, Fetcher
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
ROWS = st.lists(st.builds(RawSample, st.floats(), st.just(BEGINNING), LABELS), max_size=30).map(tuple)


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


@given(ROWS, SELECTORS, st.sampled_from(["", "namespace"]), VALUES, st.sets(KEYS))
def test_choosing_by_index_is_choosing_by_looking_at_all(rows, selector, label, value, indexed):
    by_looking = [row for row in rows if selector.matches(row.labels) and (not label or row.labels.get(label) == value)]
    snapshot = Snapshot(rows, BEGINNING, indexed=indexed)

    for _ in range(2):  # the second time with the indexes that the first has made
        by_index = snapshot.select(selector, label, value)
        assert sorted(map(id, by_index)) == sorted(map(id, by_looking))


class Reading(RuleBasedStateMachine):
    """Readers that come, go and lose patience, of a backend that is slow, fails and changes its mind."""

    TEXTS = st.sampled_from(["p", "q", "r"])

    def __init__(self) -> None:
        super().__init__()
        self.loop = looptime.patch_event_loop(asyncio.new_event_loop(), noop_cycles=100)
        self.backend = ScriptedBackend()
        fetcher = Fetcher({"b": self.backend}, loop_clock)
        self.snapshots, self.cache = Snapshots(fetcher), QueryCache(fetcher)
        self.waiting: list[asyncio.Task] = []

    @rule(text=TEXTS, templated=st.booleans())
    def somebody_reads(self, text: str, *, templated: bool) -> None:
        source, backend_text = (self.cache, f"template {text}") if templated else (self.snapshots, text)
        query = Query("b", backend_text)
        self.waiting.append(self.loop.create_task(source.get(query, timedelta(seconds=10), timedelta(seconds=5))))
        self.loop.run_until_complete(asyncio.sleep(0))

    @rule(seconds=st.sampled_from([0.0, 0.3, 1.0, 4.0, 10.0, 61.0, 600.0]))
    def time_passes(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    @rule(seconds=st.sampled_from([0.0, 0.5, 4.9, 5.1, 20.0]))
    def the_backend_takes(self, seconds: float) -> None:
        self.backend.takes = seconds

    @rule(text=TEXTS, value=st.none() | st.integers(0, 9))
    def the_backend_has(self, text: str, value: int | None) -> None:
        found = errors.BackendRejected("no") if value is None else (raw(float(value)),)
        self.backend.rows[text] = self.backend.rows[f"template {text}"] = found

    @rule()
    def somebody_loses_patience(self) -> None:
        if self.waiting:
            self.waiting.pop().cancel()
            self.loop.run_until_complete(asyncio.sleep(0))

    @rule(text=TEXTS)
    def a_rule_goes(self, text: str) -> None:
        async def goes() -> None:
            self.snapshots.forget(Query("b", text))

        self.loop.run_until_complete(goes())

    @invariant()
    def no_query_is_fetched_twice_at_a_time(self) -> None:
        assert all(most == 1 for most in self.backend.at_once.values())

    @invariant()
    def nobody_waits_longer_than_a_fetch_may_take(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(0))
        for reader in [reader for reader in self.waiting if reader.done()]:
            self.waiting.remove(reader)
            assert isinstance(reader.result(), Snapshot | Failed)

    def teardown(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(16))
        assert all(reader.done() for reader in self.waiting)
        self.loop.run_until_complete(self.snapshots.aclose())
        self.loop.run_until_complete(self.cache.aclose())
        self.loop.run_until_complete(asyncio.sleep(0))
        assert asyncio.all_tasks(self.loop) == set()
        self.loop.close()


Reading.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestReading = Reading.TestCase

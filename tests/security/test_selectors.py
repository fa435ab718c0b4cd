"""Selectors that are made up to use memory or time: the cost of a read is bounded, whatever the selector contains."""

import asyncio
import random
import string

import pytest
from yarl import URL

from adapter import errors
from adapter.label_sets import KEPT_REFRESHES, MAX_INDEXES
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.in_process import InProcessMetrics
from adapter.metrics.reader import MetricReader
from adapter.metrics.snapshot import Snapshot
from adapter.metrics.sources import Sources
from adapter.rules.query_builder import snapshot_query
from adapter.rules.rule import Rule
from adapter.rules.rule_registry import RuleRegistry
from adapter.sample import RawSample
from autoscaler.types.observation import UnavailableReading
from autoscaler.values.requirement import Requirement
from autoscaler.values.selector import MAX_REQUIREMENTS, MAX_SELECTOR_LENGTH, LabelSelector, Selector, parse
from autoscaler.values.selector import from_label_selector as selector_of
from tests.fakes.backend import BEGINNING, ScriptedBackend, loop_clock
from tests.unit.adapter.served import METRIC, served

ROWS = tuple(RawSample(float(n), BEGINNING, {"queue": f"q{n}", "namespace": f"ns{n % 7}"}) for n in range(200))
WIDE_ROWS = tuple(RawSample(1.0, BEGINNING, {f"label{n}": "x" for n in range(100)}) for _ in range(10))


def many_keys(count: int, *, absent: bool) -> Selector:
    return Selector(Requirement(f"{'absent' if absent else 'label'}{n}", "=", ("x",)) for n in range(count))


def reader(backend: ScriptedBackend, rule: Rule | None = None) -> MetricReader:
    rules = [rule or Rule("m", backend="b", query="q")]
    return MetricReader(RuleRegistry(rules), Sources(Fetcher({"b": backend}, loop_clock)), loop_clock)


class TestIndexes:
    def test_keys_that_no_series_has_are_not_indexed(self):
        snapshot = Snapshot(ROWS, BEGINNING)
        for operator, values in (("=", ("x",)), ("in", ("x", "y")), ("exists", ()), ("!", ()), ("notin", ("x",))):
            snapshot.select(Selector(Requirement(f"absent{n}", operator, values) for n in range(30)), "queue", "q1")
        assert set(snapshot.label_sets.indexed_labels) == {"queue"}

    def test_ten_selectors_with_3500_keys_build_no_index(self):
        snapshot = Snapshot(ROWS, BEGINNING)
        for number in range(10):
            keys = (Requirement(f"key{number}x{n}", "=", ("x",)) for n in range(3500))
            assert snapshot.select(Selector(keys)) == []
        assert snapshot.label_sets.indexed_labels == ()

    def test_number_of_indexes_of_a_snapshot_is_bounded(self):
        snapshot = Snapshot(WIDE_ROWS, BEGINNING)
        assert len(snapshot.select(many_keys(100, absent=False))) == len(WIDE_ROWS)
        assert len(snapshot.label_sets.indexed_labels) <= MAX_INDEXES
        carried = Snapshot(WIDE_ROWS[1:], BEGINNING, previous=snapshot)
        assert len(carried.label_sets.indexed_labels) <= MAX_INDEXES

    def test_namespace_label_of_a_rule_is_indexed_even_if_a_selector_used_all_other_indexes(self):
        rows = tuple(RawSample(1.0, BEGINNING, {**row.labels, "namespace": "shop"}) for row in WIDE_ROWS)
        snapshot = Snapshot(rows, BEGINNING)
        snapshot.select(many_keys(100, absent=False))
        snapshot.select(Selector(), "namespace", "shop")
        assert "namespace" in snapshot.label_sets.indexed_labels

    @pytest.mark.parametrize("is_changing", [False, True], ids=["same series", "other series"])
    def test_index_is_kept_while_reads_use_it_and_dropped_some_refreshes_later(self, *, is_changing: bool):
        snapshot = Snapshot(ROWS, BEGINNING)
        for number in range(2 * KEPT_REFRESHES):
            snapshot.select(parse("queue=q1"))
            snapshot = Snapshot(ROWS[number % 2 if is_changing else 0 :], BEGINNING, previous=snapshot)
        for _ in range(KEPT_REFRESHES):
            assert snapshot.label_sets.indexed_labels == ("queue",)
            snapshot = Snapshot(ROWS, BEGINNING, previous=snapshot)
        assert snapshot.label_sets.indexed_labels == ()

    @pytest.mark.parametrize("fixed_seed", [1, None], ids=["fixed seed", "random seed"])
    def test_random_selectors_never_build_more_indexes_than_the_limit(self, fixed_seed: int | None):
        seed = fixed_seed or random.SystemRandom().randrange(10**9)
        chance = random.Random(seed)  # noqa: S311 - repeatable
        snapshot = None
        for _ in range(30):
            rows = (*ROWS, *WIDE_ROWS)[chance.randrange(2) :]
            snapshot = Snapshot(rows, BEGINNING, previous=snapshot)
            for _ in range(chance.randrange(10)):
                keys = (f"{chance.choice(['label', 'absent', 'queue'])}{chance.choice(['', '1', '2', '55'])}",)
                operators = [("=", ("x",)), ("in", ("x", "q1")), ("exists", ()), ("!", ()), ("!=", ("x",))]
                selector = Selector(Requirement(key, *chance.choice(operators)) for key in keys * 40)
                snapshot.select(selector, chance.choice(["", "namespace"]), "ns1")
            assert len(snapshot.label_sets.indexed_labels) <= MAX_INDEXES + 1, seed


@pytest.mark.looptime
class TestLimits:
    @pytest.mark.parametrize(
        "selector",
        [
            pytest.param(Selector(Requirement(f"k{n}", "exists") for n in range(MAX_REQUIREMENTS + 1)), id="keys"),
            pytest.param(Selector([Requirement("k", "in", tuple(f"v{n:06}" for n in range(5000)))]), id="values"),
            pytest.param(selector_of(LabelSelector(match_labels={f"k{n}": "x" for n in range(3500)})), id="object"),
        ],
    )
    async def test_read_with_a_selector_above_the_limits_is_invalid(self, selector: Selector):
        backend = ScriptedBackend(results={"q": ROWS})
        it = reader(backend)
        trace = await it.read("shop", "m", selector)
        assert isinstance(trace.error, errors.InvalidRequest)
        assert str(MAX_REQUIREMENTS) in trace.error.message
        assert not backend.fetches
        reading = await InProcessMetrics(it).read("shop", "m", selector)
        assert isinstance(reading, UnavailableReading)
        assert trace.error.message in reading.message
        await it.sources.aclose()

    async def test_selector_at_the_limits_is_read(self):
        it = reader(ScriptedBackend(results={"q": ROWS}), Rule("m", backend="b", query="q", namespace=None))
        requirements = [Requirement(f"k{n}", "!") for n in range(MAX_REQUIREMENTS - 1)]
        letters = string.ascii_letters[:40]
        selector = Selector(
            [*requirements, Requirement("queue", "in", ("q1", *(letters + str(n) for n in range(500))))]
        )
        assert len(str(selector)) <= MAX_SELECTOR_LENGTH
        assert (await it.read("ns1", "m", selector)).error is None
        await it.sources.aclose()

    async def test_many_selectors_leave_no_task_and_no_index_behind(self):
        it = reader(ScriptedBackend(results={"q": ROWS}))
        for number in range(500):
            await it.read("ns1", "m", Selector([Requirement(f"made-up-{number}", "=", ("x",))]))
        snapshot = it.sources.snapshots.peek(snapshot_query(Rule("m", backend="b", query="q")))
        assert isinstance(snapshot, Snapshot)
        assert len(snapshot.label_sets.indexed_labels) <= 2
        assert len(asyncio.all_tasks()) <= 2
        await it.sources.aclose()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(",".join(f"k{n}" for n in range(3500)), "more than 64 requirements", id="3500 keys"),
        pytest.param("k+in+(" + "v," * 20_000 + ")", "longer than 32768 characters", id="long list"),
    ],
)
async def test_request_with_a_selector_above_the_limits_gets_status_400(text: str, message: str):
    async with served() as it:
        it.backend.may_respond.set()
        async with it.session.get(URL(f"{METRIC}?labelSelector={text}", encoded=True)) as response:
            assert response.status == 400
            assert message in (await response.json())["message"]

"""Callers that make up names, namespaces and selectors: time and memory are bounded, others lose nothing."""

import difflib
from typing import Any

import pytest

from adapter.metrics.fetcher import Fetcher
from adapter.metrics.read_history import ReadKey
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.rules.rule import Rule, Series
from adapter.rules.rule_registry import RuleRegistry
from adapter.rules.rule_set import RuleSet
from autoscaler.values.requirement import Requirement
from autoscaler.values.selector import Selector
from tests.fakes.backend import ScriptedBackend, loop_clock, raw

pytestmark = pytest.mark.looptime
EVERYTHING = Selector()


def reader(*rules: Rule) -> MetricReader:
    backend = ScriptedBackend(results={"static": ()})
    return MetricReader(
        RuleRegistry(rules), Sources(Fetcher({"b": backend, "static": backend}, loop_clock)), loop_clock
    )


def selector(number: int) -> Selector:
    return Selector(Requirement(f"{number}-{each}", "!=", ("x" * 60,)) for each in range(20))


def test_few_names_are_compared_in_full_to_find_similar_ones(monkeypatch: pytest.MonkeyPatch):
    names = [f"orders-queue-depth-of-shop-{number:04}" for number in range(2000)]
    rules = RuleSet(Rule(name, (Series(1),)) for name in names)
    compared: list[str] = []
    original = difflib.SequenceMatcher.ratio

    def ratio(self: Any) -> float:
        compared.append(self.a)
        return float(original(self))

    monkeypatch.setattr(difflib.SequenceMatcher, "ratio", ratio)
    assert "orders-queue-depth-of-shop-0042" in rules.similar_names("shop", "orders-queue-dpth-of-shop-0042")
    assert len(set(compared)) <= 5


async def test_reads_of_unknown_metrics_are_recorded_up_to_a_limit():
    it = reader(Rule("m", (Series(1),)))
    await it.read("shop", "misspelt", EVERYTHING)
    for number in range(1100):
        await it.read("noisy", f"made-up-{number}", EVERYTHING)
    assert len(list(it.unknown_reads)) < 1024
    assert it.unknown_reads.peek(ReadKey("shop", "misspelt", EVERYTHING)) is not None, "of another namespace"


async def test_made_up_selectors_evict_no_record_and_no_evaluation_of_another_namespace(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("adapter.metrics.evaluation_cache._MAX_BYTES", 256 * 1024)
    it = reader(Rule("m", (Series(1),)))
    it.sources.fetcher.backends["static"].results = AnyResult()  # type: ignore[attr-defined]
    await it.read("quiet", "m", EVERYTHING)
    for number in range(300):
        await it.read("noisy", "m", selector(number))
    assert len(it._evaluations) < 100
    assert it.peek("quiet", "m", EVERYTHING).resolved is it.peek("quiet", "m", EVERYTHING).resolved
    assert it.history.peek(ReadKey("quiet", "m", EVERYTHING)) is not None
    await it.sources.aclose()


async def test_size_of_the_read_history_is_bounded():
    it = reader(Rule("m", (Series(1),)))
    made_up = selector(0)
    for number in range(12_000):
        it.history.record(ReadKey("noisy", f"{number}", made_up)).record_query("q" * 16_000)
    records = list(it.history)
    size = sum(key.size + len(record.query) for key, record in records)
    assert size < 32 * 1024 * 1024
    assert len(records) < 12_000


class AnyResult(dict[str, object]):
    """Has one series for every query."""

    def get(self, _key: object, _default: object = None) -> object:
        return (raw(1),)

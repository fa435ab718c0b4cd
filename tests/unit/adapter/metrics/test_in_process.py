import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapter import errors
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.in_process import InProcessMetrics
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.rules.rule import Namespacing, Rule
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.ports import ExternalMetricsSource, MetricChange
from autoscaler.types.observation import ExternalReading, FailureClass, UnavailableReading
from autoscaler.values.selector import parse
from tests.fakes.backend import BEGINNING, ScriptedBackend, raw

pytestmark = pytest.mark.looptime

SHARED = Rule("shared", backend="b", query="s", namespace=Namespacing(), aliases=("common",))
TEAMS = Rule("queue", backend="b", query="q")


@asynccontextmanager
async def in_process(
    backend: ScriptedBackend, *rules: Rule
) -> AsyncIterator[tuple[ExternalMetricsSource, MetricReader]]:
    reader = MetricReader(RuleRegistry(rules), Sources(Fetcher({"b": backend}, lambda: BEGINNING)), lambda: BEGINNING)
    yield InProcessMetrics(reader), reader
    await reader.sources.aclose()


async def test_reading_has_a_value_for_each_matching_series():
    backend = ScriptedBackend(
        results={"q": (raw(1, namespace="a"), raw(2, namespace="b"), raw(3, namespace="a", queue="x"))}
    )
    async with in_process(backend, TEAMS) as (metrics, _):
        assert await metrics.read("a", "Queue", parse("")) == ExternalReading((1000, 3000), BEGINNING)


TEMPLATE = Rule("queue", backend="b", query="sum(q{<<.LabelMatchers>>})")


@pytest.mark.parametrize("rule", [Rule("queue", backend="b", query="q", namespace=Namespacing()), TEMPLATE])
async def test_value_is_at_hand_after_the_first_read(rule):
    found = (raw(1),)
    backend = ScriptedBackend(results={"q": found, 'sum(q{namespace="a"})': found})
    async with in_process(backend, rule) as (metrics, reader):
        assert metrics.read_now("a", "queue", parse("")) is None
        assert list(reader.history) == []
        value = await metrics.read("a", "queue", parse(""))
        assert metrics.read_now("a", "queue", parse("")) == value == ExternalReading((1000,), BEGINNING)
        assert [record.reads for _, record in reader.history] == [2]
        await asyncio.sleep(300)
        assert metrics.read_now("a", "queue", parse("")) is None


async def test_unknown_metric_is_unavailable_at_once():
    async with in_process(ScriptedBackend(), TEAMS) as (metrics, _):
        reading = metrics.read_now("a", "qeue", parse(""))
    assert isinstance(reading, UnavailableReading)
    assert reading.failure is FailureClass.UNKNOWN_METRIC


@pytest.mark.parametrize(
    ("metric", "found", "failure", "text"),
    [
        ("queue", errors.BackendTimeout("no response within 5s"), FailureClass.TIMED_OUT, "no response within 5s"),
        ("queue", (), FailureClass.NO_SERIES, "the query returned no series"),
        ("qeue", (), FailureClass.UNKNOWN_METRIC, "did you mean 'queue'?"),
    ],
)
async def test_unavailable_metric_has_the_message_of_the_external_metrics_api(metric, found, failure, text):
    async with in_process(ScriptedBackend(results={"q": found}), TEAMS) as (metrics, _):
        reading = await metrics.read("a", metric, parse(""))

    assert isinstance(reading, UnavailableReading)
    assert reading.failure is failure
    assert reading.message.startswith("unable to fetch metrics from external metrics API: ")
    assert text in reading.message


FIXED = Rule("lag", backend="b", query="l", namespace=Namespacing(label="team", fixed="infra"), namespaces=("a", "b"))


async def test_changed_series_are_notified_for_each_name_and_affected_namespace():
    backend = ScriptedBackend(results={"q": (raw(1, namespace="a"), raw(2, namespace="b")), "s": (raw(1, n="x"),)})
    changes: list[MetricChange] = []
    async with in_process(backend, TEAMS, SHARED) as (metrics, _):
        await metrics.read("a", "queue", parse(""))
        await metrics.read("a", "shared", parse(""))
        unsubscribe = metrics.subscribe(changes.extend)
        backend.results |= {"q": (raw(1, namespace="a"), raw(9, namespace="b")), "s": (raw(2, n="x"),)}
        await asyncio.sleep(16)
        assert sorted(changes, key=lambda change: change.metric) == [
            MetricChange("common", None, ({"n": "x"},)),
            MetricChange("queue", "b", ({"namespace": "b"},)),
            MetricChange("shared", None, ({"n": "x"},)),
        ]

        unsubscribe()
        backend.results["s"] = (raw(3, n="x"),)
        await asyncio.sleep(16)
        assert len(changes) == 3


async def test_changed_series_of_a_fixed_namespace_are_notified_where_the_rule_applies():
    backend = ScriptedBackend(results={"l": (raw(1, team="infra"), raw(1, team="other"))})
    changes: list[MetricChange] = []
    async with in_process(backend, FIXED) as (metrics, _):
        await metrics.read("a", "lag", parse(""))
        metrics.subscribe(changes.extend)
        backend.results["l"] = (raw(1, team="infra"), raw(2, team="other"))
        await asyncio.sleep(16)
        assert changes == []
        backend.results["l"] = (raw(2, team="infra"), raw(3, team="other"))
        await asyncio.sleep(16)

    series = ({"team": "infra"},)
    assert changes == [MetricChange("lag", "a", series), MetricChange("lag", "b", series)]


async def test_series_of_namespaces_in_which_the_rule_does_not_apply_are_not_notified():
    rule = Rule("queue", backend="b", query="q", namespaces=("a",))
    before = (raw(1, namespace="a"), raw(1, namespace="b"), raw(1, other="c"))
    backend = ScriptedBackend(results={"q": before})
    changes: list[MetricChange] = []
    async with in_process(backend, rule) as (metrics, _):
        await metrics.read("a", "queue", parse(""))
        metrics.subscribe(changes.extend)
        backend.results["q"] = tuple(raw(2, **each.labels) for each in before)
        await asyncio.sleep(16)

    assert changes == [MetricChange("queue", "a", ({"namespace": "a"},))]


async def test_failure_and_recovery_are_notified_to_every_reader():
    backend = ScriptedBackend(results={"q": (raw(1, namespace="a"),)})
    changes: list[MetricChange] = []
    async with in_process(backend, TEAMS) as (metrics, _):
        await metrics.read("a", "queue", parse(""))
        metrics.subscribe(changes.extend)
        backend.results["q"] = errors.BackendTimeout("no response within 5s")
        await asyncio.sleep(16)
        assert changes == [MetricChange("queue")]
        backend.results["q"] = (raw(1, namespace="a"),)
        await asyncio.sleep(16)

    assert changes == [MetricChange("queue")] * 2


async def test_changed_rule_is_notified_to_every_reader():
    changes: list[MetricChange] = []
    async with in_process(ScriptedBackend(), TEAMS) as (metrics, reader):
        metrics.subscribe(changes.extend)
        reader.registry.set_file_rules([])

    assert changes == [MetricChange("queue")]

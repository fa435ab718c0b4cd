import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapter import errors
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.in_process import InProcessMetrics
from adapter.metrics.reader import MetricReader, Sources
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


async def test_changed_value_is_notified_for_each_name_and_affected_namespace():
    backend = ScriptedBackend(results={"q": (raw(1, namespace="a"), raw(2, namespace="b")), "s": (raw(1),)})
    changes: list[MetricChange] = []
    async with in_process(backend, TEAMS, SHARED) as (metrics, _):
        await metrics.read("a", "queue", parse(""))
        await metrics.read("a", "shared", parse(""))
        unsubscribe = metrics.subscribe(changes.append)
        backend.results |= {"q": (raw(1, namespace="a"), raw(9, namespace="b")), "s": (raw(2),)}
        await asyncio.sleep(16)
        assert sorted(changes, key=lambda change: change.metric) == [
            MetricChange("common"),
            MetricChange("queue", "b"),
            MetricChange("shared"),
        ]

        unsubscribe()
        backend.results["s"] = (raw(3),)
        await asyncio.sleep(16)
        assert len(changes) == 3


async def test_changed_rule_is_notified():
    changes: list[MetricChange] = []
    async with in_process(ScriptedBackend(), TEAMS) as (metrics, reader):
        metrics.subscribe(changes.append)
        reader.registry.set_file_rules([])

    assert changes == [MetricChange("queue")]

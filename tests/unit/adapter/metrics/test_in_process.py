import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapter import errors
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.in_process import InProcessMetrics
from adapter.metrics.reader import RuleReader, Sources
from adapter.rules.rule import Namespacing, Rule
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.ports import ExternalMetrics, MetricChange
from autoscaler.types.observation import ExternalReading, FailureClass, UnavailableReading
from autoscaler.values.selector import parse
from tests.fakes.backend import BEGINNING, ScriptedBackend, raw

pytestmark = pytest.mark.looptime

SHARED = Rule("shared", backend="b", query="s", namespace=Namespacing(), aliases=("common",))
TEAMS = Rule("queue", backend="b", query="q")


@asynccontextmanager
async def door(backend: ScriptedBackend, *rules: Rule) -> AsyncIterator[tuple[ExternalMetrics, RuleReader]]:
    reader = RuleReader(RuleRegistry(rules), Sources.of(Fetcher({"b": backend}, lambda: BEGINNING)), lambda: BEGINNING)
    yield InProcessMetrics(reader), reader
    await reader.sources.aclose()


async def test_a_number_for_each_series_that_matches():
    backend = ScriptedBackend(rows={"q": (raw(1, namespace="a"), raw(2, namespace="b"), raw(3, namespace="a"))})
    async with door(backend, TEAMS) as (metrics, _):
        assert await metrics.read("a", "Queue", parse("")) == ExternalReading((1000, 3000), BEGINNING)


@pytest.mark.parametrize(
    ("metric", "found", "failure", "says"),
    [
        ("queue", errors.BackendTimeout("no answer within 5s"), FailureClass.TIMED_OUT, "no answer within 5s"),
        ("queue", (), FailureClass.NO_SERIES, "it has none now"),
        ("qeue", (), FailureClass.UNKNOWN_METRIC, "did you mean 'queue'?"),
    ],
)
async def test_what_cannot_be_read_is_a_value_in_the_apis_words(metric, found, failure, says):
    async with door(ScriptedBackend(rows={"q": found}), TEAMS) as (metrics, _):
        told = await metrics.read("a", metric, parse(""))

    assert isinstance(told, UnavailableReading)
    assert told.failure is failure
    assert told.message.startswith("unable to fetch metrics from external metrics API: ")
    assert says in told.message


async def test_a_change_is_told_where_it_is_and_by_every_name():
    backend = ScriptedBackend(rows={"q": (raw(1, namespace="a"), raw(2, namespace="b")), "s": (raw(1),)})
    heard: list[MetricChange] = []
    async with door(backend, TEAMS, SHARED) as (metrics, _):
        await metrics.read("a", "queue", parse(""))
        await metrics.read("a", "shared", parse(""))
        unsubscribe = metrics.subscribe(heard.append)
        backend.rows |= {"q": (raw(1, namespace="a"), raw(9, namespace="b")), "s": (raw(2),)}
        await asyncio.sleep(16)
        assert sorted(heard, key=lambda change: change.metric) == [
            MetricChange("common"),
            MetricChange("queue", "b"),
            MetricChange("shared"),
        ]

        unsubscribe()
        backend.rows["s"] = (raw(3),)
        await asyncio.sleep(16)
        assert len(heard) == 3


async def test_an_edited_rule_is_a_change():
    heard: list[MetricChange] = []
    async with door(ScriptedBackend(), TEAMS) as (metrics, reader):
        metrics.subscribe(heard.append)
        reader.book.use_file([])

    assert heard == [MetricChange("queue")]

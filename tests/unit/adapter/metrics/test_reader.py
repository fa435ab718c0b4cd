import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from weakref import ref

import msgspec
import pytest

from adapter import errors
from adapter.backends.static import StaticBackend
from adapter.metrics.evaluation_cache import _MAX_SERIES as MAX_SERIES
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.read_history import ReadKey
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.rules.rule import Namespacing, OnEmpty, OnTooOld, OnUnusable, Rule, Series
from adapter.rules.rule_registry import RuleRegistry
from adapter.sample import Sample
from autoscaler.types.observation import FailureClass
from autoscaler.values.selector import parse
from tests.fakes.backend import BEGINNING, ScriptedBackend, loop_clock, raw

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EVERYTHING = parse("")


def reader(*rules: Rule) -> MetricReader:
    return MetricReader(
        RuleRegistry(rules), Sources(Fetcher({"static": StaticBackend(lambda: NOW)}, lambda: NOW)), lambda: NOW
    )


def series(value: float, **labels: str) -> Series:
    return Series(value, labels)


async def test_static_metric_has_the_current_time():
    read = await reader(Rule("m", (series(1.5, a="x"), series(2, a="y")))).read_samples("any", "M", EVERYTHING)

    assert read == (Sample(1500, NOW, {"a": "x"}), Sample(2000, NOW, {"a": "y"}))


async def test_selector_limits_the_series():
    read = await reader(Rule("m", (series(1, a="x"), series(2, a="y")))).read_samples("any", "m", parse("a in (y)"))

    assert read == (Sample(2000, NOW, {"a": "y"}),)


@pytest.mark.parametrize(
    ("rule", "selector", "error", "failure", "message"),
    [
        pytest.param(
            Rule("queue", (series(1),), ("other",)),
            "",
            errors.MetricNotFound,
            FailureClass.UNKNOWN_METRIC,
            "no rule defines metric 'm' in namespace 'ns'",
            id="no rule",
        ),
        pytest.param(
            Rule("mm", (series(1),)),
            "",
            errors.MetricNotFound,
            FailureClass.UNKNOWN_METRIC,
            "no rule defines metric 'm' in namespace 'ns'; did you mean 'mm'?",
            id="no rule, but one like it",
        ),
        pytest.param(
            Rule("m", (series(1, a="x"),)),
            "a=y",
            errors.NoSeries,
            FailureClass.NO_SERIES,
            "metric 'm': static: no series: no series matches a=y",
            id="no series match",
        ),
        pytest.param(
            Rule("m", ()),
            "",
            errors.NoSeries,
            FailureClass.NO_SERIES,
            "metric 'm': static: no series: the query returned no series",
            id="none",
        ),
        pytest.param(
            Rule("m", (series(float("nan")),)),
            "",
            errors.NotANumber,
            FailureClass.NOT_A_NUMBER,
            "metric 'm': static: not a number",
            id="not a number",
        ),
        pytest.param(
            Rule("m", (series(-1),)),
            "",
            errors.OutOfRange,
            FailureClass.OUT_OF_RANGE,
            "metric 'm': static: out of range: negative",
            id="negative",
        ),
        pytest.param(
            Rule("m", (Series(1, {}, timedelta(seconds=91)),), max_sample_age=timedelta(seconds=90)),
            "",
            errors.TooOld,
            FailureClass.TOO_OLD,
            "metric 'm': static: too old: the limit is 90s",
            id="too old",
        ),
    ],
)
async def test_unavailable_metric_raises_an_error_with_its_failure_class(
    rule: Rule, selector: str, error: type[errors.AdapterError], failure: FailureClass, message: str
):
    with pytest.raises(error) as raised:
        await reader(rule).read_samples("ns", "m", parse(selector))

    assert (raised.value.message, raised.value.failure) == (message, failure)


async def test_series_with_the_same_labels_are_ambiguous_and_do_not_affect_other_namespaces():
    twice = (series(1, namespace="shop", queue="a"), series(1, queue="a", namespace="shop"))
    it = reader(Rule("m", (*twice, series(2, namespace="bank")), namespace=Namespacing("namespace")))

    with pytest.raises(errors.Ambiguous) as caught:
        await it.read_samples("shop", "m", EVERYTHING)
    assert caught.value.message == (
        "metric 'm': static: ambiguous: two series have the same labels: add a label that distinguishes them,"
        " or aggregate them in the query"
    )
    assert [sample.milli for sample in await it.read_samples("bank", "m", EVERYTHING)] == [2000]


async def test_sample_of_exactly_the_maximum_age_is_served():
    rule = Rule("m", (Series(1, {}, timedelta(seconds=90)),), max_sample_age=timedelta(seconds=90))

    assert len(await reader(rule).read_samples("ns", "m", EVERYTHING)) == 1


# --- namespaces, labels and the read history -----------------------------------------------------------------------


@asynccontextmanager
async def reading(backend: ScriptedBackend, *rules: Rule) -> AsyncIterator[MetricReader]:
    it = MetricReader(RuleRegistry(rules), Sources(Fetcher({"b": backend}, loop_clock)), loop_clock)
    yield it
    await it.sources.aclose()


TEAMS = Rule("queue", backend="b", query="q")


@pytest.mark.looptime
async def test_read_returns_series_of_its_namespace_only():
    series = (raw(1, namespace="shop"), raw(2, namespace="bank"), raw(4))
    async with reading(ScriptedBackend(results={"q": series}), TEAMS) as it:
        assert [s.milli for s in await it.read_samples("shop", "queue", EVERYTHING)] == [1000]
        assert [s.milli for s in await it.read_samples("bank", "queue", EVERYTHING)] == [2000]
        with pytest.raises(
            errors.NoSeries,
            match=r"no series of namespace 'other' \(label namespace\), to which reads are restricted: q$",
        ):
            await it.read_samples("other", "queue", parse("a=b"))


@pytest.mark.looptime
async def test_selector_cannot_reach_series_of_another_namespace():
    series = (raw(1, namespace="shop"), raw(2, namespace="bank"))
    async with reading(ScriptedBackend(results={"q": series}), TEAMS) as it:
        for hostile in ("namespace=bank", "namespace in (bank,shop),namespace!=shop", "namespace!=shop"):
            with pytest.raises(errors.NoSeries):
                await it.read_samples("shop", "queue", parse(hostile))


@pytest.mark.looptime
async def test_fixed_namespace_serves_the_same_series_to_all_namespaces():
    shared = Rule("queue", backend="b", query="q", namespace=Namespacing("namespace", "bank"))
    async with reading(
        ScriptedBackend(results={"q": (raw(1, namespace="shop"), raw(2, namespace="bank"))}), shared
    ) as it:
        assert [s.milli for s in await it.read_samples("shop", "queue", EVERYTHING)] == [2000]


@pytest.mark.looptime
async def test_missing_namespace_label_is_named_in_the_error():
    async with reading(ScriptedBackend(results={"q": (raw(1),)}), TEAMS) as it:
        with pytest.raises(errors.NoSeries, match="no series has the label 'namespace'"):
            await it.read_samples("shop", "queue", EVERYTHING)


@pytest.mark.looptime
async def test_label_that_the_rule_does_not_allow_is_a_bad_request():
    rule = Rule("queue", backend="b", query="q", labels=("queue", "vhost"))
    async with reading(ScriptedBackend(), rule) as it:
        with pytest.raises(
            errors.InvalidRequest, match="label 'pod' is not allowed in selectors; allowed labels: queue, vhost"
        ):
            await it.read_samples("shop", "queue", parse("queue=a,pod=b"))


@pytest.mark.looptime
async def test_template_query_contains_the_selector_and_is_cached():
    rule = Rule("queue", backend="b", query="sum(x{<<.LabelMatchers>>})")
    query = 'sum(x{queue="a",namespace="shop"})'
    backend = ScriptedBackend(results={query: (raw(3),)})
    async with reading(backend, rule) as it:
        for _ in range(5):
            assert [s.milli for s in await it.read_samples("shop", "queue", parse("queue=a"))] == [3000]
        with pytest.raises(errors.InvalidRequest, match="compares numbers"):
            await it.read_samples("shop", "queue", parse("queue>5"))

    assert backend.fetches == {query: 1}


@pytest.mark.looptime
async def test_history_records_last_value_and_first_failure_time():
    backend = ScriptedBackend(results={"q": (raw(5, namespace="shop"), raw(1, namespace="bank"))}, delay=0.5)
    async with reading(backend, TEAMS) as it:
        await it.read_samples("shop", "queue", EVERYTHING)
        backend.results["q"] = errors.BackendRejected("no", detail="HTTP 418")
        for _ in range(3):
            await asyncio.sleep(20)
            with contextlib.suppress(errors.BackendRejected):
                await it.read_samples("shop", "Queue", EVERYTHING)
        record = it.history.record(ReadKey("shop", "queue", EVERYTHING))

        assert (record.failures, record.failure) == (3, FailureClass.REFUSED)
        assert record.first_failure_time == BEGINNING + timedelta(seconds=20.5)
        assert (record.last_good_milli, record.last_good_time) == (5000, BEGINNING + timedelta(seconds=0.5))
        assert (record.message, record.detail) == ("metric 'queue': b: refused: no", "HTTP 418")
        assert (record.query, record.series_found, record.series_matched) == ("q", 0, 0)

        backend.results["q"] = (raw(6, loop_clock(), namespace="shop"),)
        await asyncio.sleep(20)
        await it.read_samples("shop", "queue", EVERYTHING)
        recovered = it.history.record(ReadKey("shop", "queue", EVERYTHING))
        assert (recovered.failures, recovered.first_failure_time, recovered.last_good_milli) == (0, None, 6000)
        assert (record.series_found, record.series_matched, record.fetch_duration) == (1, 1, timedelta(seconds=0.5))


@pytest.mark.looptime
async def test_peek_neither_fetches_nor_counts_as_a_read():
    backend = ScriptedBackend(results={"q": (raw(5, namespace="shop"),)})
    async with reading(backend, TEAMS) as it:
        assert it.peek("shop", "queue", EVERYTHING).result is None
        await it.read_samples("shop", "queue", EVERYTHING)
        assert [s.milli for s in it.peek("shop", "queue", parse("namespace=shop")).samples] == [5000]

        assert backend.fetches["q"] == 1
        assert it.history.peek(ReadKey("shop", "queue", parse("namespace=shop"))) is None


@pytest.mark.looptime
async def test_changed_rule_is_fetched_again():
    backend = ScriptedBackend(results={"q": (raw(5, namespace="shop"),)})
    async with reading(backend, TEAMS) as it:
        await it.read_samples("shop", "queue", EVERYTHING)
        it.registry.set_file_rules([Rule("queue", backend="b", query="q", interval=timedelta(seconds=30))])
        await it.read_samples("shop", "queue", EVERYTHING)

    assert backend.fetches["q"] == 2


# --- the evaluation cache ------------------------------------------------------------------------------------------

HERE = {"namespace": "ns"}


@pytest.mark.looptime
async def test_evaluation_is_reused_until_its_oldest_sample_is_too_old():
    backend = ScriptedBackend(results={"q": (raw(5, **HERE), raw(6, BEGINNING - timedelta(seconds=9), **HERE, a="x"))})
    rule = Rule("m", backend="b", query="q", interval=timedelta(hours=1), max_sample_age=timedelta(seconds=60))
    async with reading(backend, rule) as it:
        first = await it.read_samples("ns", "m", EVERYTHING)
        await asyncio.sleep(50)
        again = await it.read_samples("ns", "m", EVERYTHING)
        await asyncio.sleep(2)

        with pytest.raises(errors.TooOld):
            await it.read_samples("ns", "m", EVERYTHING)

    assert again is first
    assert [sample.milli for sample in first] == [5000, 6000]


@pytest.mark.looptime
async def test_new_snapshot_is_evaluated_again():
    backend = ScriptedBackend(results={"q": (raw(5, **HERE),)})
    async with reading(backend, Rule("m", backend="b", query="q")) as it:
        await it.read_samples("ns", "m", EVERYTHING)
        backend.results["q"] = (raw(7, **HERE),)
        await asyncio.sleep(31)

        assert [sample.milli for sample in await it.read_samples("ns", "m", EVERYTHING)] == [7000]


@pytest.mark.looptime
async def test_changed_rule_does_not_reuse_an_evaluation_of_the_old_rule():
    backend = ScriptedBackend(results={'q{namespace="ns"}': (raw(float("nan")), raw(5))})
    rule = Rule("m", backend="b", query="q{<<.LabelMatchers>>}", on_nan=OnUnusable.SKIP)
    async with reading(backend, rule) as it:
        before = await it.read_samples("ns", "m", EVERYTHING)
        it.registry.set_file_rules([msgspec.structs.replace(rule, on_nan=OnUnusable.ZERO)])
        after = await it.read_samples("ns", "m", EVERYTHING)

    assert backend.fetches.total() == 1
    assert [[sample.milli for sample in samples] for samples in (before, after)] == [[5000], [0, 5000]]


@pytest.mark.looptime
async def test_zero_of_on_empty_always_has_the_current_time():
    rule = Rule("m", backend="b", query="q", on_empty=OnEmpty.ZERO)
    async with reading(ScriptedBackend(), rule) as it:
        (first,) = await it.read_samples("ns", "m", EVERYTHING)
        await asyncio.sleep(5)
        (again,) = await it.read_samples("ns", "m", EVERYTHING)

    assert again.at - first.at == timedelta(seconds=5)


@pytest.mark.looptime
async def test_evaluation_of_many_series_is_not_cached():
    backend = ScriptedBackend(
        results={"q": tuple(raw(1, number=str(number), **HERE) for number in range(MAX_SERIES + 1))}
    )
    async with reading(backend, Rule("m", backend="b", query="q")) as it:
        first, again = [await it.read_samples("ns", "m", EVERYTHING) for _ in range(2)]

    assert again == first
    assert again is not first


async def test_read_after_a_reload_uses_the_new_rule_object():
    it = reader(Rule("m", (series(1),)))
    await it.read("ns", "m", EVERYTHING)
    (new,) = rules = (Rule("m", (series(1),)),)
    it.registry.set_file_rules(rules)

    assert (await it.read("ns", "m", EVERYTHING)).rule is new


async def test_evaluation_cache_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("adapter.metrics.evaluation_cache._MAX_BYTES", 4500)
    it = reader(Rule("m", (series(1, a="x"),)))
    for number in range(10):
        await it.read_samples("ns", "m", parse(f"a,made!=up{number}"))
        assert 0 < len(it._evaluations) <= 3


@pytest.mark.parametrize(
    ("namespace", "selector"),
    [
        pytest.param("ns", f"a in ({','.join(f'x{number}' for number in range(1000))})", id="selector"),
        pytest.param("n" * 60_000, "a=x1", id="namespace"),
    ],
)
async def test_read_with_a_large_key_is_served_but_not_stored(namespace: str, selector: str):
    it = reader(Rule("m", (series(1, a="x1"),)))
    for _ in range(2):
        (sample,) = await it.read_samples(namespace, "m", parse(selector))
        assert sample.milli == 1000

    assert len(it._evaluations) == len(list(it.history)) == 0


@pytest.mark.looptime
async def test_evaluation_cache_does_not_keep_old_snapshots_alive():
    backend = ScriptedBackend(results={"q": (raw(1, **HERE),)})
    async with reading(backend, Rule("m", backend="b", query="q")) as it:
        snapshot = ref((await it.read("ns", "m", EVERYTHING)).result)
        await asyncio.sleep(600)

        assert snapshot() is None


@pytest.mark.looptime
async def test_cached_reads_are_recorded_in_the_history():
    backend = ScriptedBackend(results={"q": (raw(1, **HERE), raw(2, namespace="other"), raw(3, namespace="other"))})
    async with reading(backend, Rule("m", backend="b", query="q")) as it:
        traces = [await it.read("ns", "m", EVERYTHING) for _ in range(3)]
        record = it.history.peek(ReadKey("ns", "m", EVERYTHING))

    assert [list(trace.matched) for trace in traces] == [[raw(1, **HERE)]] * 3
    assert record is not None
    assert (record.reads, record.series_found, record.series_matched, record.last_good_milli) == (3, 3, 1, 1000)


@pytest.mark.looptime
async def test_sample_with_the_latest_possible_timestamp_is_served():
    end = datetime.max.replace(tzinfo=UTC)
    backend = ScriptedBackend(results={"q": (raw(1, end, **HERE),)})
    async with reading(backend, Rule("m", backend="b", query="q")) as it:
        reads = [await it.read_samples("ns", "m", EVERYTHING) for _ in range(2)]

    assert [sample.at for (sample,) in reads] == [end, end]


@pytest.mark.looptime
async def test_skipped_old_series_does_not_invalidate_the_evaluation():
    old = BEGINNING - timedelta(hours=1)
    backend = ScriptedBackend(results={"q": (raw(1, **HERE), raw(2, old, **HERE, a="x"))})
    async with reading(backend, Rule("m", backend="b", query="q", on_too_old=OnTooOld.SKIP)) as it:
        first, again = [await it.read_samples("ns", "m", EVERYTHING) for _ in range(2)]

    assert again is first
    assert [sample.milli for sample in first] == [1000]

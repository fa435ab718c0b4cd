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
from adapter.metrics.evaluation_cache import _FEW as FEW
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.read_history import Asked
from adapter.metrics.reader import RuleReader, Sources
from adapter.rules.rule import Namespacing, OnEmpty, OnOld, OnUnusable, Rule, Series
from adapter.rules.rule_registry import RuleRegistry
from adapter.sample import Sample
from autoscaler.types.observation import FailureClass
from autoscaler.values.selector import parse
from tests.fakes.backend import BEGINNING, ScriptedBackend, loop_clock, raw

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EVERYTHING = parse("")


def reader(*rules: Rule) -> RuleReader:
    return RuleReader(
        RuleRegistry(rules), Sources.of(Fetcher({"static": StaticBackend(lambda: NOW)}, lambda: NOW)), lambda: NOW
    )


def series(value: float, **labels: str) -> Series:
    return Series(value, labels)


async def test_the_rules_own_numbers_as_of_now():
    read = await reader(Rule("m", (series(1.5, a="x"), series(2, a="y")))).read("any", "M", EVERYTHING)

    assert read == (Sample(1500, NOW, {"a": "x"}), Sample(2000, NOW, {"a": "y"}))


async def test_only_series_that_match():
    read = await reader(Rule("m", (series(1, a="x"), series(2, a="y")))).read("any", "m", parse("a in (y)"))

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
            "metric 'm': static: no series: nothing matches a=y",
            id="nothing matches",
        ),
        pytest.param(
            Rule("m", ()),
            "",
            errors.NoSeries,
            FailureClass.NO_SERIES,
            "metric 'm': static: no series: it has none now",
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
async def test_no_number_is_an_error_with_its_class(
    rule: Rule, selector: str, error: type[errors.AdapterError], failure: FailureClass, message: str
):
    with pytest.raises(error) as refused:
        await reader(rule).read("ns", "m", parse(selector))

    assert (refused.value.message, refused.value.failure) == (message, failure)


async def test_a_number_just_as_old_as_may_be_is_served():
    rule = Rule("m", (Series(1, {}, timedelta(seconds=90)),), max_sample_age=timedelta(seconds=90))

    assert len(await reader(rule).read("ns", "m", EVERYTHING)) == 1


# --- whose series, which labels, what is remembered -----------------------------------------------------------------


@asynccontextmanager
async def reading(backend: ScriptedBackend, *rules: Rule) -> AsyncIterator[RuleReader]:
    it = RuleReader(RuleRegistry(rules), Sources.of(Fetcher({"b": backend}, loop_clock)), loop_clock)
    yield it
    await it.sources.aclose()


TEAMS = Rule("queue", backend="b", query="q")


@pytest.mark.looptime
async def test_a_namespace_is_answered_from_its_own_series():
    rows = (raw(1, namespace="shop"), raw(2, namespace="bank"), raw(4))
    async with reading(ScriptedBackend(rows={"q": rows}), TEAMS) as it:
        assert [s.milli for s in await it.read("shop", "queue", EVERYTHING)] == [1000]
        assert [s.milli for s in await it.read("bank", "queue", EVERYTHING)] == [2000]
        with pytest.raises(errors.NoSeries, match="nothing matches a=b,namespace=other"):
            await it.read("other", "queue", parse("a=b"))


@pytest.mark.looptime
async def test_no_selector_reaches_another_namespaces_series():
    rows = (raw(1, namespace="shop"), raw(2, namespace="bank"))
    async with reading(ScriptedBackend(rows={"q": rows}), TEAMS) as it:
        for hostile in ("namespace=bank", "namespace in (bank,shop),namespace!=shop", "namespace!=shop"):
            with pytest.raises(errors.NoSeries):
                await it.read("shop", "queue", parse(hostile))


@pytest.mark.looptime
async def test_what_is_shared_is_answered_from_one_namespace_for_all():
    shared = Rule("queue", backend="b", query="q", namespace=Namespacing("namespace", "bank"))
    async with reading(ScriptedBackend(rows={"q": (raw(1, namespace="shop"), raw(2, namespace="bank"))}), shared) as it:
        assert [s.milli for s in await it.read("shop", "queue", EVERYTHING)] == [2000]


@pytest.mark.looptime
async def test_series_without_the_label_that_the_rule_names_are_explained():
    async with reading(ScriptedBackend(rows={"q": (raw(1),)}), TEAMS) as it:
        with pytest.raises(errors.NoSeries, match="no series has the label 'namespace' that the rule"):
            await it.read("shop", "queue", EVERYTHING)


@pytest.mark.looptime
async def test_a_label_that_selectors_may_not_use_is_the_callers_error():
    rule = Rule("queue", backend="b", query="q", labels=("queue", "vhost"))
    async with reading(ScriptedBackend(), rule) as it:
        with pytest.raises(errors.BadRequest, match="cannot use the label 'pod'; they can use: queue, vhost"):
            await it.read("shop", "queue", parse("queue=a,pod=b"))


@pytest.mark.looptime
async def test_a_template_is_asked_for_each_selector_with_the_selector_inside():
    rule = Rule("queue", backend="b", query="sum(x{<<.LabelMatchers>>})")
    asked = 'sum(x{queue="a",namespace="shop"})'
    backend = ScriptedBackend(rows={asked: (raw(3),)})
    async with reading(backend, rule) as it:
        for _ in range(5):
            assert [s.milli for s in await it.read("shop", "queue", parse("queue=a"))] == [3000]
        with pytest.raises(errors.BadRequest, match="compares numbers"):
            await it.read("shop", "queue", parse("queue>5"))

    assert backend.asked == {asked: 1}


@pytest.mark.looptime
async def test_each_read_is_remembered_with_since_when_it_fails():
    backend = ScriptedBackend(rows={"q": (raw(5, namespace="shop"), raw(1, namespace="bank"))}, takes=0.5)
    async with reading(backend, TEAMS) as it:
        await it.read("shop", "queue", EVERYTHING)
        backend.rows["q"] = errors.BackendRejected("no", detail="HTTP 418")
        for _ in range(3):
            await asyncio.sleep(20)
            with contextlib.suppress(errors.BackendRejected):
                await it.read("shop", "Queue", EVERYTHING)
        read = it.reads.of(Asked("shop", "queue", EVERYTHING))

        assert (read.failures, read.failure) == (3, FailureClass.REFUSED)
        assert read.first_failure_time == BEGINNING + timedelta(seconds=20.5)
        assert (read.good_milli, read.good_at) == (5000, BEGINNING + timedelta(seconds=0.5))
        assert (read.message, read.detail) == ("metric 'queue': scripted: refused: no", "HTTP 418")
        assert (read.query, read.seen, read.chosen) == ("q", 0, 0)

        backend.rows["q"] = (raw(6, loop_clock(), namespace="shop"),)
        await asyncio.sleep(20)
        await it.read("shop", "queue", EVERYTHING)
        assert (read.failures, read.first_failure_time, read.good_milli) == (0, None, 6000)
        assert (read.seen, read.chosen, read.took) == (1, 1, timedelta(seconds=0.5))


@pytest.mark.looptime
async def test_a_glance_fetches_nothing_and_is_not_remembered():
    backend = ScriptedBackend(rows={"q": (raw(5, namespace="shop"),)})
    async with reading(backend, TEAMS) as it:
        assert it.glance("shop", "queue", EVERYTHING).outcome is None
        await it.read("shop", "queue", EVERYTHING)
        assert [s.milli for s in it.glance("shop", "queue", parse("namespace=shop")).samples] == [5000]

        assert backend.asked["q"] == 1
        assert it.reads.peek(Asked("shop", "queue", parse("namespace=shop"))) is None


@pytest.mark.looptime
async def test_an_edited_rule_is_fetched_anew():
    backend = ScriptedBackend(rows={"q": (raw(5, namespace="shop"),)})
    async with reading(backend, TEAMS) as it:
        await it.read("shop", "queue", EVERYTHING)
        it.book.use_file([Rule("queue", backend="b", query="q", interval=timedelta(seconds=30))])
        await it.read("shop", "queue", EVERYTHING)

    assert backend.asked["q"] == 2


# --- what is told again ---------------------------------------------------------------------------------------------

HERE = {"namespace": "ns"}


@pytest.mark.looptime
async def test_the_same_read_is_told_again_until_its_number_is_too_old():
    backend = ScriptedBackend(rows={"q": (raw(5, **HERE), raw(6, BEGINNING - timedelta(seconds=9), **HERE))})
    rule = Rule("m", backend="b", query="q", interval=timedelta(hours=1), max_sample_age=timedelta(seconds=60))
    async with reading(backend, rule) as it:
        first = await it.read("ns", "m", EVERYTHING)
        await asyncio.sleep(50)
        again = await it.read("ns", "m", EVERYTHING)
        await asyncio.sleep(2)

        with pytest.raises(errors.TooOld):
            await it.read("ns", "m", EVERYTHING)

    assert again is first
    assert [sample.milli for sample in first] == [5000, 6000]


@pytest.mark.looptime
async def test_what_is_told_again_is_left_for_a_new_snapshot():
    backend = ScriptedBackend(rows={"q": (raw(5, **HERE),)})
    async with reading(backend, Rule("m", backend="b", query="q")) as it:
        await it.read("ns", "m", EVERYTHING)
        backend.rows["q"] = (raw(7, **HERE),)
        await asyncio.sleep(31)

        assert [sample.milli for sample in await it.read("ns", "m", EVERYTHING)] == [7000]


@pytest.mark.looptime
async def test_an_edited_rule_tells_its_own_story_of_what_an_older_one_found():
    backend = ScriptedBackend(rows={'q{namespace="ns"}': (raw(float("nan")), raw(5))})
    rule = Rule("m", backend="b", query="q{<<.LabelMatchers>>}", on_nan=OnUnusable.SKIP)
    async with reading(backend, rule) as it:
        before = await it.read("ns", "m", EVERYTHING)
        it.book.use_file([msgspec.structs.replace(rule, on_nan=OnUnusable.ZERO)])
        after = await it.read("ns", "m", EVERYTHING)

    assert backend.asked.total() == 1
    assert [[sample.milli for sample in samples] for samples in (before, after)] == [[5000], [0, 5000]]


@pytest.mark.looptime
async def test_the_zero_of_a_rule_that_has_nothing_is_always_of_now():
    rule = Rule("m", backend="b", query="q", on_empty=OnEmpty.ZERO)
    async with reading(ScriptedBackend(), rule) as it:
        (first,) = await it.read("ns", "m", EVERYTHING)
        await asyncio.sleep(5)
        (again,) = await it.read("ns", "m", EVERYTHING)

    assert again.at - first.at == timedelta(seconds=5)


@pytest.mark.looptime
async def test_many_series_are_not_kept_to_be_told_again():
    backend = ScriptedBackend(rows={"q": tuple(raw(1, number=str(number), **HERE) for number in range(FEW + 1))})
    async with reading(backend, Rule("m", backend="b", query="q")) as it:
        first, again = [await it.read("ns", "m", EVERYTHING) for _ in range(2)]

    assert again == first
    assert again is not first


async def test_rules_that_were_read_anew_and_are_the_same_are_found_as_the_new_ones():
    it = reader(Rule("m", (series(1),)))
    await it.look("ns", "m", EVERYTHING)
    (new,) = rules = (Rule("m", (series(1),)),)
    it.book.use_file(rules)

    assert (await it.look("ns", "m", EVERYTHING)).rule is new


async def test_made_up_selectors_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("adapter.metrics.evaluation_cache._MOST", 3)
    it = reader(Rule("m", (series(1, a="x"),)))
    for number in range(10):
        await it.read("ns", "m", parse(f"a,made!=up{number}"))
        assert 0 < len(it._ways._ways) <= 3


@pytest.mark.parametrize(
    ("namespace", "selector"),
    [
        pytest.param("ns", f"a in ({','.join(f'x{number}' for number in range(1000))})", id="selector"),
        pytest.param("n" * 60_000, "a=x1", id="namespace"),
    ],
)
async def test_what_is_longer_than_people_write_is_answered_and_not_remembered(namespace: str, selector: str):
    it = reader(Rule("m", (series(1, a="x1"),)))
    for _ in range(2):
        (sample,) = await it.read(namespace, "m", parse(selector))
        assert sample.milli == 1000

    assert len(it._ways._ways) == len(list(it.reads)) == 0


@pytest.mark.looptime
async def test_what_was_read_long_ago_is_not_held_by_who_read_it():
    backend = ScriptedBackend(rows={"q": (raw(1, **HERE),)})
    async with reading(backend, Rule("m", backend="b", query="q")) as it:
        snapshot = ref((await it.look("ns", "m", EVERYTHING)).outcome)
        await asyncio.sleep(600)

        assert snapshot() is None


@pytest.mark.looptime
async def test_who_is_told_the_same_again_is_counted_as_before():
    backend = ScriptedBackend(rows={"q": (raw(1, **HERE), raw(2, namespace="other"), raw(3, namespace="other"))})
    async with reading(backend, Rule("m", backend="b", query="q")) as it:
        looks = [await it.look("ns", "m", EVERYTHING) for _ in range(3)]
        read = it.reads.peek(Asked("ns", "m", EVERYTHING))

    assert [list(look.matched) for look in looks] == [[raw(1, **HERE)]] * 3
    assert read is not None
    assert (read.reads, read.seen, read.chosen, read.good_milli) == (3, 3, 1, 1000)


@pytest.mark.looptime
async def test_a_number_from_the_end_of_time_is_served_as_any_other():
    end = datetime.max.replace(tzinfo=UTC)
    backend = ScriptedBackend(rows={"q": (raw(1, end, **HERE),)})
    async with reading(backend, Rule("m", backend="b", query="q")) as it:
        told = [await it.read("ns", "m", EVERYTHING) for _ in range(2)]

    assert [sample.at for (sample,) in told] == [end, end]


@pytest.mark.looptime
async def test_a_series_that_is_left_out_for_its_age_is_no_reason_to_look_again():
    old = BEGINNING - timedelta(hours=1)
    backend = ScriptedBackend(rows={"q": (raw(1, **HERE), raw(2, old, **HERE))})
    async with reading(backend, Rule("m", backend="b", query="q", on_too_old=OnOld.SKIP)) as it:
        first, again = [await it.read("ns", "m", EVERYTHING) for _ in range(2)]

    assert again is first
    assert [sample.milli for sample in first] == [1000]

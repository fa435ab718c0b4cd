from datetime import UTC, datetime, timedelta

import pytest

from adapter import errors
from adapter.backends.static import StaticBackend
from adapter.fetch import Fetcher
from adapter.reader import RuleReader, Sources
from adapter.rules.book import RuleBook
from adapter.rules.rule import Rule, Series
from adapter.sample import Sample
from autoscaler.selector import parse
from autoscaler.types.observation import FailureClass

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EVERYTHING = parse("")


def reader(*rules: Rule) -> RuleReader:
    return RuleReader(
        RuleBook(rules), Sources.of(Fetcher({"static": StaticBackend(lambda: NOW)}, lambda: NOW)), lambda: NOW
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

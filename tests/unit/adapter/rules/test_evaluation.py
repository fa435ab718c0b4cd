from datetime import timedelta
from typing import Any

import pytest

from adapter import errors
from adapter.rules.evaluation import evaluate
from adapter.rules.rule import Aggregation, OnEmpty, OnTooOld, OnUnusable, Rule
from adapter.sample import RawSample, Sample
from tests.fakes.backend import BEGINNING, raw

NAN, INFINITY = float("nan"), float("inf")
OLD = BEGINNING - timedelta(minutes=6)


def served(*rows: RawSample, **settings: Any) -> tuple[Sample, ...]:
    return evaluate(Rule("m", **settings), rows, BEGINNING, lambda: "no series matches")


def milli(*rows: RawSample, **settings: Any) -> list[int]:
    return [sample.milli for sample in served(*rows, **settings)]


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        pytest.param(Aggregation.SUM, [1000, 2000, 6000], id="sum serves all series"),
        pytest.param(Aggregation.MAX, [6000], id="max"),
        pytest.param(Aggregation.MIN, [1000], id="min"),
        pytest.param(Aggregation.AVG, [3000], id="avg"),
    ],
)
def test_series_are_aggregated_as_the_rule_says(aggregation: Aggregation, expected: list[int]):
    assert milli(raw(1), raw(2), raw(6), aggregation=aggregation) == expected


def test_average_is_rounded_up_and_has_the_common_labels_and_the_oldest_timestamp():
    oldest = BEGINNING - timedelta(seconds=9)
    (average,) = served(raw(1, a="x", b="1"), raw(1, oldest, a="x", b="2"), raw(0, a="x"), aggregation=Aggregation.AVG)

    assert average == Sample(667, oldest, {"a": "x"})


def test_aggregation_one_rejects_two_series():
    assert milli(raw(1), aggregation=Aggregation.ONE) == [1000]
    with pytest.raises(errors.Ambiguous, match="exactly one"):
        served(raw(1), raw(2), aggregation=Aggregation.ONE)


@pytest.mark.parametrize("value", [NAN, INFINITY, -INFINITY])
def test_value_that_is_not_finite_is_handled_by_on_nan(value: float):
    with pytest.raises(errors.NotANumber):
        served(raw(value), raw(1))
    assert milli(raw(value), raw(1), on_nan=OnUnusable.ZERO) == [0, 1000]
    assert milli(raw(value), raw(1), on_nan=OnUnusable.SKIP) == [1000]


@pytest.mark.parametrize(("value", "reason"), [(-1, "negative"), (1e30, "above")])
def test_value_out_of_range_is_handled_by_on_out_of_range(value: float, reason: str):
    with pytest.raises(errors.OutOfRange, match=reason):
        served(raw(value))
    assert milli(raw(value), on_out_of_range=OnUnusable.ZERO) == [0]
    assert milli(raw(value), raw(1), on_out_of_range=OnUnusable.SKIP) == [1000]


def test_sum_that_overflows_int64_is_an_error():
    with pytest.raises(errors.OutOfRange, match="the sum"):
        served(raw(9e15), raw(9e15))


def test_sample_that_is_too_old_is_an_error_or_skipped():
    with pytest.raises(errors.TooOld, match="the limit is 300s"):
        served(raw(1, OLD), raw(2))
    assert milli(raw(1, OLD), raw(2), on_too_old=OnTooOld.SKIP) == [2000]


def test_no_matching_series_is_an_error_or_zero():
    with pytest.raises(errors.NoSeries, match="no series matches"):
        served()
    assert served(on_empty=OnEmpty.ZERO) == (Sample(0, BEGINNING),)


def test_on_empty_applies_when_all_series_are_skipped():
    with pytest.raises(errors.NoSeries, match="all matching series were skipped as unusable"):
        served(raw(NAN), on_nan=OnUnusable.SKIP)
    assert milli(raw(1, OLD), on_too_old=OnTooOld.SKIP, on_empty=OnEmpty.ZERO) == [0]


def test_repeated_labels_are_ambiguous_whatever_the_values_and_the_aggregation():
    rows = [raw(NAN, queue="a"), raw(2, queue="a")]
    for aggregation in Aggregation:
        rule = Rule("m", aggregation=aggregation, on_nan=OnUnusable.SKIP)
        with pytest.raises(errors.Ambiguous, match="two series have the same labels: add a label") as caught:
            evaluate(rule, rows, BEGINNING, str, {"queue": "a"})
        assert caught.value.detail == "{'queue': 'a'}"

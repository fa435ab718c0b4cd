from datetime import timedelta
from typing import Any

import pytest

from adapter import errors
from adapter.rules.evaluation import evaluate
from adapter.rules.rule import Aggregation, OnEmpty, OnOld, OnUnusable, Rule
from adapter.sample import RawSample, Sample
from tests.fakes.backend import BEGINNING, raw

NAN, INFINITY = float("nan"), float("inf")
OLD = BEGINNING - timedelta(minutes=6)


def served(*rows: RawSample, **said: Any) -> tuple[Sample, ...]:
    return evaluate(Rule("m", **said), rows, BEGINNING, lambda: "nothing matches")


def milli(*rows: RawSample, **said: Any) -> list[int]:
    return [sample.milli for sample in served(*rows, **said)]


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        pytest.param(Aggregation.SUM, [1000, 2000, 6000], id="sum serves all, and an HPA adds them"),
        pytest.param(Aggregation.MAX, [6000], id="max"),
        pytest.param(Aggregation.MIN, [1000], id="min"),
        pytest.param(Aggregation.AVG, [3000], id="avg"),
    ],
)
def test_several_series_become_what_the_rule_says(aggregation: Aggregation, expected: list[int]):
    assert milli(raw(1), raw(2), raw(6), aggregation=aggregation) == expected


def test_an_average_rounds_up_and_keeps_what_all_have_in_common():
    later = BEGINNING - timedelta(seconds=9)
    (average,) = served(raw(1, a="x", b="1"), raw(1, later, a="x", b="2"), raw(0, a="x"), aggregation=Aggregation.AVG)

    assert average == Sample(667, later, {"a": "x"})


def test_one_is_one_and_two_are_an_error():
    assert milli(raw(1), aggregation=Aggregation.ONE) == [1000]
    with pytest.raises(errors.Ambiguous, match="exactly one"):
        served(raw(1), raw(2), aggregation=Aggregation.ONE)


@pytest.mark.parametrize("value", [NAN, INFINITY, -INFINITY])
def test_what_is_no_number_is_an_error_unless_the_rule_says_otherwise(value: float):
    with pytest.raises(errors.NotANumber):
        served(raw(value), raw(1))
    assert milli(raw(value), raw(1), on_nan=OnUnusable.ZERO) == [0, 1000]
    assert milli(raw(value), raw(1), on_nan=OnUnusable.SKIP) == [1000]


@pytest.mark.parametrize(("value", "says"), [(-1, "negative"), (1e30, "above")])
def test_what_an_hpa_would_misread_is_an_error_unless_the_rule_says_otherwise(value: float, says: str):
    with pytest.raises(errors.OutOfRange, match=says):
        served(raw(value))
    assert milli(raw(value), on_out_of_range=OnUnusable.ZERO) == [0]
    assert milli(raw(value), raw(1), on_out_of_range=OnUnusable.SKIP) == [1000]


def test_a_sum_that_an_hpa_cannot_hold_is_an_error():
    with pytest.raises(errors.OutOfRange, match="the sum"):
        served(raw(9e15), raw(9e15))


def test_what_is_too_old_is_an_error_or_left_out_and_never_zero():
    with pytest.raises(errors.TooOld, match="the limit is 300s"):
        served(raw(1, OLD), raw(2))
    assert milli(raw(1, OLD), raw(2), on_too_old=OnOld.SKIP) == [2000]


def test_nothing_is_an_error_unless_the_rule_calls_it_zero():
    with pytest.raises(errors.NoSeries, match="nothing matches"):
        served()
    assert served(on_empty=OnEmpty.ZERO) == (Sample(0, BEGINNING),)


def test_that_all_were_left_out_is_also_nothing():
    with pytest.raises(errors.NoSeries, match="none of those that match can be used"):
        served(raw(NAN), on_nan=OnUnusable.SKIP)
    assert milli(raw(1, OLD), on_too_old=OnOld.SKIP, on_empty=OnEmpty.ZERO) == [0]

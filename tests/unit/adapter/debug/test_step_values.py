"""Inputs and outputs of steps as text with units."""

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.debug.decision_log import DecisionLog
from adapter.debug.formatting import format_duration
from adapter.debug.step_values import step_values
from autoscaler.types import steps
from autoscaler.types.history import Recommendation
from autoscaler.types.spec import Policy
from autoscaler.types.steps import Step
from tests.browser.sample_decisions import add_samples
from tests.builders import (
    NOW,
    ReconcileInput,
    external_reading,
    later,
    make_external_metric,
    make_fallback,
    make_spec,
    run_reconciles,
    unavailable_reading,
)

MACHINE_FORMAT = re.compile(r"P(T?\d+[HMSD.])|\d{4}-\d\d-\d\dT|[{}\[\]]|None|True|False")


def texts(step: Step) -> dict[str, str]:
    return dict(step_values(step))


def last_steps(log: DecisionLog, key: str) -> tuple[Step, ...]:
    entry = log.get(key)
    assert entry is not None
    return entry.decision.steps


@pytest.fixture(scope="module")
def log() -> DecisionLog:
    decisions = DecisionLog()
    add_samples(decisions)
    return decisions


def test_values_of_a_metric_are_in_the_unit_of_the_metric(log: DecisionLog):
    average, utilization = (
        texts(step) for step in last_steps(log, "shop/web") if isinstance(step, steps.MetricProposalStep)
    )
    assert (average["total"], average["target value"], average["tolerance"]) == ("31", "10", "0.9 to 1.1")
    assert utilization["target value"] == "60 %"
    assert utilization["utilization"].endswith(" %")
    assert utilization["ready pods"] == "3"


def test_windows_policies_and_times_have_units():
    window = steps.StabilizationStep(3, 5, 5, timedelta(seconds=300), Recommendation(5, NOW))
    assert texts(window) == {
        "recommended replicas": "3",
        "replicas": "5",
        "current replicas": "5",
        "window": "5 min",
        "held by": "5 replicas, recommended at 2026-03-01 12:00:00 UTC",
    }
    limit = steps.LimitStep(9, 7, steps.ScalingLimit.UP_RATE, 7, Policy("Pods", 4, 90), later(60))
    assert texts(limit)["policy"] == "4 pods in 1 min 30 s"
    assert texts(limit)["until"] == "2026-03-01 12:01:00 UTC"


def test_no_value_of_a_sample_is_in_a_machine_format(log: DecisionLog):
    for _, entry in log:
        for step in entry.decision.steps:
            assert [text for text in texts(step).values() if MACHINE_FORMAT.search(text)] == []


@given(st.lists(st.one_of(st.none(), st.integers(0, 10**9)), min_size=1, max_size=8), st.integers(1, 600))
def test_no_value_of_any_run_is_in_a_machine_format(values: list[int | None], duration: int):
    spec = make_spec(make_external_metric(average="10", fallback=make_fallback(6, duration)))
    readings = [unavailable_reading() if value is None else external_reading(value) for value in values]
    inputs = [ReconcileInput(60 * index, (reading,)) for index, reading in enumerate(readings)]
    for decision in run_reconciles(spec, inputs):
        for step in decision.steps:
            for label, text in step_values(step):
                assert not MACHINE_FORMAT.search(text), (label, text)
                assert "_" not in label


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.5, "0.5 s"),
        (45, "45 s"),
        (60, "1 min"),
        (90, "1 min 30 s"),
        (300, "5 min"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
        (3601, "1 h"),
        (86400, "1 d"),
        (90061, "1 d 1 h"),
    ],
)
def test_duration_has_its_two_largest_units(seconds: float, text: str):
    assert format_duration(timedelta(seconds=seconds)) == text

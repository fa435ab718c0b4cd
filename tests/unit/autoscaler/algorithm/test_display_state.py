"""Derivation of display states from decisions."""

import pytest
from msgspec.structs import replace

from adapter.debug.decision_log import DecisionLog
from autoscaler.algorithm.display_state import State, display_states
from autoscaler.algorithm.not_evaluated import decide_invalid_spec
from autoscaler.types.history import History
from autoscaler.types.observation import UnavailableTarget
from autoscaler.types.steps import (
    InvalidSelectorStep,
    OutOfBoundsStep,
    ReconcileFailedStep,
    ScaleFromZeroStep,
    WriteFailedStep,
)
from tests.browser.sample_decisions import add_states
from tests.builders import (
    ALL_GATES,
    NOW,
    ReconcileInput,
    decide_once,
    external_reading,
    later,
    make_autoscaler,
    make_external_metric,
    make_fallback,
    make_observation,
    make_spec,
    run_reconciles,
    settled_history,
    unavailable_reading,
)


def test_each_sample_has_its_state():
    log = DecisionLog()
    add_states(log)

    assert {key: entry.states[0].name.value for key, entry in log} == {
        "shop/mails": "fallback",
        "shop/search": "metric failing",
        "shop/web": "normal",
        "shop/checkout": "limited",
        "night/reports": "scaled to zero",
        "night/import": "scaling disabled",
        "data/etl": "dry run",
        "data/train": "paused",
        "data/deleted": "target unavailable",
        "data/pods": "metric unavailable",
        "shop/cart": "conflict",
        "odd/hostile": "metric failing",
    }


def test_several_states_are_sorted_by_severity():
    metric = make_external_metric(fallback=make_fallback(10, 30))
    steps = [ReconcileInput(after, (unavailable_reading(),)) for after in (0, 15, 30, 45)]
    last = run_reconciles(make_spec(metric, mode="DryRun"), steps)[-1]

    assert [state.name for state in display_states(last)] == [State.FALLBACK, State.DRY_RUN, State.LIMITED]


def test_fallback_begins_at_the_end_of_the_failure_duration_and_the_failure_before():
    metric = make_external_metric(fallback=make_fallback(10, 20))
    steps = [ReconcileInput(after, (unavailable_reading(),)) for after in (0, 15, 30, 45)]
    *_, before, first, last = run_reconciles(make_spec(metric), steps)

    failing, *_ = display_states(before)
    assert (failing.name, failing.since) == (State.METRIC_FAILING, NOW)
    for decision in (first, last):
        fallback, *_ = display_states(decision)
        assert (fallback.name, fallback.since, fallback.failing_since) == (State.FALLBACK, later(20), NOW)


@pytest.mark.parametrize(
    ("step", "name", "detail"),
    [
        pytest.param(ReconcileFailedStep("KeyError"), State.RECONCILE_FAILED, "KeyError", id="failed reconcile"),
        pytest.param(WriteFailedStep(5, "forbidden"), State.WRITE_FAILED, "forbidden", id="failed write"),
        pytest.param(
            InvalidSelectorStep("InvalidSelector", "no selector"),
            State.INVALID_SELECTOR,
            "no selector",
            id="invalid selector",
        ),
        pytest.param(OutOfBoundsStep(12, 10), State.LIMITED, "by maxReplicas", id="above maxReplicas"),
        pytest.param(OutOfBoundsStep(1, 3), State.LIMITED, "by minReplicas", id="below minReplicas"),
    ],
)
def test_step_that_ends_a_reconcile_has_a_state(step, name: State, detail: str):
    decision = replace(decide_once(history=settled_history(3)), steps=(step,))

    assert [(state.name, state.detail) for state in display_states(decision)] == [(name, detail)]


def test_invalid_spec_lists_its_problems():
    refused = decide_invalid_spec(
        autoscaler=make_autoscaler(),
        problems=("spec.maxReplicas: Required",),
        history=History(),
        gates=ALL_GATES,
        now=NOW,
    )

    assert [(state.name, state.detail) for state in display_states(refused)] == [
        (State.INVALID_SPEC, "spec.maxReplicas: Required")
    ]


def test_since_is_the_time_when_the_state_began():
    log, autoscaler = DecisionLog(), make_autoscaler()
    steps = [
        ReconcileInput(0, (external_reading(15),)),
        ReconcileInput(15, (unavailable_reading(),)),
        ReconcileInput(30, (unavailable_reading(),)),
        ReconcileInput(45, (external_reading(15),)),
    ]
    since = []
    for decision in run_reconciles(make_spec(), steps):
        log.on_decision("shop/web", autoscaler, decision)
        entry = log.get("shop/web")
        assert entry is not None
        since.append((entry.states[0].name.value, (entry.since - NOW).seconds))

    assert since == [("normal", 0), ("metric failing", 15), ("metric failing", 15), ("normal", 45)]


def test_unavailable_target_shows_the_error_message():
    unavailable = decide_once(observation=make_observation(target=UnavailableTarget("not found")))

    assert [(state.name, state.detail) for state in display_states(unavailable)] == [
        (State.TARGET_UNAVAILABLE, "not found")
    ]


def test_raised_minimum_after_scaling_to_zero_is_no_state():
    decision = replace(decide_once(make_spec(), make_observation()), replicas=2, steps=(ScaleFromZeroStep(0, 2),))

    assert [state.name for state in display_states(decision)] == [State.NORMAL]

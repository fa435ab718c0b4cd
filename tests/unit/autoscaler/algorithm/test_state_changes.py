"""The text of the states in the status, and the events of their changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from autoscaler.algorithm.display_state import State
from autoscaler.algorithm.state_changes import _parse, with_state
from autoscaler.types.metric_result import UnavailableCause
from autoscaler.types.observation import FailureClass
from autoscaler.types.status import Status
from autoscaler.types.steps import (
    MetricFallbackStep,
    MetricUnavailableStep,
    NotAppliedReason,
    NotAppliedStep,
    OutOfBoundsStep,
    ScalingDisabledStep,
    Step,
    TargetUnavailableStep,
)
from tests.builders import NOW, decide_once, later

FAILING = MetricUnavailableStep("queue", "no answer", UnavailableCause.RETRIEVAL, FailureClass.TIMED_OUT)
FALLBACK = MetricFallbackStep("queue", 5, "no answer", NOW, "Static", 5, 3, FailureClass.TIMED_OUT)
CONFLICT = NotAppliedStep(NotAppliedReason.CONFLICT, 5, 3, conflicts=("PodAutoscaler/shop/a", "PodAutoscaler/shop/b"))
PAUSED = NotAppliedStep(NotAppliedReason.PAUSED, 5, 3, later(60))
DISABLED = ScalingDisabledStep(scale_to_zero_enabled=True)
UNTIL = "paused (until 2026-03-01T12:01:00Z)"
OWNERS = "conflict (PodAutoscaler/shop/a, PodAutoscaler/shop/b)"
DRY_RUN = NotAppliedStep(NotAppliedReason.DRY_RUN, 5, 3)


@pytest.mark.parametrize(
    ("before", "steps", "after", "reasons"),
    [
        pytest.param(None, [], "normal", [], id="new autoscaler"),
        pytest.param("normal", [FAILING], "metric failing (timed out)", [], id="metric starts to fail"),
        pytest.param("metric failing (timed out)", [], "normal", ["MetricRecovered"], id="metric recovers"),
        pytest.param("metric failing (timed out)", [FALLBACK], "fallback (timed out)", [], id="fallback starts"),
        pytest.param("fallback (timed out)", [], "normal", [], id="fallback ends, with an event of the fallback"),
        pytest.param("normal", [DRY_RUN], "dry run", ["DryRun"], id="dry run"),
        pytest.param(
            "dry run", [PAUSED], "paused (until 2026-03-01T12:01:00Z)", ["Paused", "DryRunEnded"], id="paused"
        ),
        pytest.param("paused", [], "normal", ["Resumed"], id="resumed"),
        pytest.param(
            "paused",
            [CONFLICT],
            OWNERS,
            ["AmbiguousTarget"],
            id="conflict",
        ),
        pytest.param(
            "conflict (PodAutoscaler/shop/a, PodAutoscaler/shop/b)",
            [],
            "normal",
            ["ConflictResolved"],
            id="no conflict",
        ),
        pytest.param(
            "fallback (timed out), dry run",
            [TargetUnavailableStep("gone")],
            "target unavailable, fallback (timed out), dry run",
            [],
            id="nothing is evaluated",
        ),
        pytest.param(
            "metric failing (timed out)",
            [OutOfBoundsStep(1, 3)],
            "metric failing (timed out), limited (by minReplicas)",
            [],
            id="metrics are not read",
        ),
        pytest.param(
            "paused", [ScalingDisabledStep(scale_to_zero_enabled=True)], "paused, scaling disabled", [], id="disabled"
        ),
        pytest.param("words of a later version (x, y), paused", [], "normal", ["Resumed"], id="unknown state"),
    ],
)
def test_change_of_the_state_has_its_events(before: str | None, steps: list[Step], after: str, reasons: list[str]):
    decision = replace(decide_once(), steps=tuple(steps), events=())
    changed = with_state(decision, Status(state=before))

    assert (changed.status.state, [event.reason for event in changed.events]) == (after, reasons)


DETAILS = st.text(st.characters(blacklist_characters="()", blacklist_categories=["Cs"]), min_size=1)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(list(State)), st.none() | DETAILS))
def test_states_are_read_from_their_text(states: dict[State, str | None]):
    texts = {state: state.value if detail is None else f"{state.value} ({detail})" for state, detail in states.items()}

    assert _parse(", ".join(texts.values())) == texts


def test_decision_with_the_state_of_the_status_is_unchanged():
    decision = replace(decide_once(), steps=(FAILING,))
    decision = replace(decision, status=replace(decision.status, state="metric failing (timed out)"))

    assert with_state(decision, decision.status) is decision

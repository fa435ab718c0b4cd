"""The text of each step, and the explanation of a whole decision."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from autoscaler.algorithm.explain import explain, rule, step_text
from autoscaler.types import steps
from autoscaler.types.history import History, Recommendation
from autoscaler.types.metric_result import Calculation, CalculationRule, PodGroups, Tolerance, UnavailableCause
from autoscaler.types.observation import FailureClass
from autoscaler.types.spec import Policy
from autoscaler.types.steps import NotAppliedReason, ScalingLimit, Step
from tests.builders import (
    decide_once,
    external_reading,
    later,
    make_external_metric,
    make_fallback,
    make_observation,
    make_recommendations,
    make_resource_metric,
    make_spec,
    pod_reading,
    unavailable_reading,
)

TOLERANCE = Tolerance(0.1, 0.1)
AT = datetime(2026, 3, 1, 14, 3, 20, tzinfo=UTC)


def proposal(calculation: Calculation) -> steps.MetricProposalStep:
    return steps.MetricProposalStep("cpu", calculation.replicas, 4, TOLERANCE, calculation)


def unavailable(**parts: object) -> steps.MetricUnavailableStep:
    return msgspec.structs.replace(
        steps.MetricUnavailableStep("queue", "connection refused", UnavailableCause.RETRIEVAL, FailureClass.REFUSED),
        **parts,
    )


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param(steps.TargetStep(1, 2, 0, 9), "target: spec 1 replica, status 2; bounds 0 to 9", id="target"),
        pytest.param(
            steps.TargetUnavailableStep("not found"),
            "target: the scale cannot be read: not found",
            id="target unavailable",
        ),
        pytest.param(
            steps.ScalingDisabledStep(scale_to_zero_enabled=True),
            "scaling disabled: 0 replicas, not set by this autoscaler; set replicas to enable scaling",
            id="scaling disabled by zero replicas",
        ),
        pytest.param(
            steps.ScalingDisabledStep(scale_to_zero_enabled=False),
            "scaling disabled: 0 replicas, not set by this autoscaler; set replicas to enable scaling"
            " (feature gate HPAScaleToZero is off)",
            id="scaling disabled with the feature gate off",
        ),
        pytest.param(
            steps.OutOfBoundsStep(12, 10),
            "bounds: 12 is above maxReplicas: scale to 10 without evaluating metrics",
            id="above maxReplicas",
        ),
        pytest.param(
            steps.OutOfBoundsStep(1, 3),
            "bounds: 1 is below minReplicas: scale to 3 without evaluating metrics",
            id="below minReplicas",
        ),
        pytest.param(
            steps.InvalidSelectorStep("SelectorRequired", "selector is required"),
            "selector: the target's pods cannot be determined: selector is required",
            id="invalid selector",
        ),
        pytest.param(
            proposal(Calculation(5, CalculationRule.READY_PODS, 500, 30, 50 / 30, 50, multiplier=3)),
            "cpu: proposes 5 replicas: utilization 50 %, target 30 %; "
            "ratio 1.667, outside the tolerance of 0.9 to 1.1, times 3 pods",
            id="utilization",
        ),
        pytest.param(
            proposal(Calculation(2, CalculationRule.READY_PODS, 20_000, 15_000, 4 / 3, multiplier=1)),
            "cpu: proposes 2 replicas: value 20, target 15; "
            "ratio 1.333, outside the tolerance of 0.9 to 1.1, times 1 pod",
            id="value with one pod",
        ),
        pytest.param(
            proposal(Calculation(4, CalculationRule.WITHIN_TOLERANCE, 5250, 5000, 1.05)),
            "cpu: proposes no change from 4: value 5.25, target 5; ratio 1.05 is within the tolerance of 0.9 to 1.1",
            id="within tolerance",
        ),
        pytest.param(
            proposal(
                Calculation(4, CalculationRule.ASSUMED_PODS, 900, 50, 1.8, 90, 1.34, 4, PodGroups(2, ("a",), ("b",)))
            ),
            "cpu: proposes 4 replicas: utilization 90 %, target 50 %; "
            "ratio 1.34, outside the tolerance of 0.9 to 1.1, times 4 pods"
            " (2 pods without a metric assumed at 0)",
            id="scale up with assumed values",
        ),
        pytest.param(
            proposal(
                Calculation(
                    3, CalculationRule.DIRECTION_REVERSED, 400, 500, 0.8, None, 1.02, 3, PodGroups(2, (), ("b",))
                )
            ),
            "cpu: proposes no change from 3: value 0.4, target 0.5; "
            "ratio 1.02 with assumed values, "
            "outside the tolerance of 0.9 to 1.1, reverses the direction "
            "(1 pod without a metric assumed at full usage)",
            id="assumed values reverse the direction",
        ),
        pytest.param(
            proposal(Calculation(2, CalculationRule.FROM_ZERO, 8600, 4400, 8600 / 4400)),
            "cpu: proposes 2 replicas: value 8.6, target 4.4; ratio 1.955 rounded up, no pods",
            id="from zero",
        ),
        pytest.param(
            proposal(Calculation(3, CalculationRule.TOTAL, 3334, 4400, 0.757)),
            "cpu: proposes 3 replicas: average 3.334 per replica, target 4.4; "
            "ratio 0.757, outside the tolerance of 0.9 to 1.1: total / 4.4",
            id="average per replica",
        ),
        pytest.param(
            proposal(Calculation(3, CalculationRule.TOTAL, -(2**63), 5000, 2.4)),
            "cpu: proposes 3 replicas: total 12, target 5 per replica; total / 5",
            id="average with no pods",
        ),
        pytest.param(unavailable(), "queue: unavailable (refused): connection refused", id="unavailable metric"),
        pytest.param(
            unavailable(failure=None),
            "queue: unavailable: connection refused",
            id="unavailable metric without failure class",
        ),
        pytest.param(
            unavailable(failing_since=AT, fallback_at=AT + timedelta(minutes=3), fallback_replicas=10),
            "queue: unavailable (refused): connection refused; failing since 14:03:20, "
            "fallback of 10 replicas at 14:06:20",
            id="unavailable metric with pending fallback",
        ),
        pytest.param(
            steps.MetricFallbackStep("queue", 10, "refused", AT, "Static", 10, 50),
            "queue: fallback proposes 10 replicas: failing since 14:03:20",
            id="fallback",
        ),
        pytest.param(
            steps.MetricFallbackStep("queue", 50, "refused", AT, "UseMax", 10, 50),
            "queue: fallback proposes 50 replicas: failing since 14:03:20; "
            "UseMax: the larger of 10 and the 50 at activation",
            id="fallback with UseMax",
        ),
        pytest.param(
            steps.MetricFallbackStep("queue", 10, "refused", AT, "UseMin", 10, 50),
            "queue: fallback proposes 10 replicas: failing since 14:03:20; "
            "UseMin: the smaller of 10 and the 50 at activation",
            id="fallback with UseMin",
        ),
        pytest.param(
            steps.RecommendationStep(8, 8, 2, 2, blocked=True),
            "recommendation: none, all metrics are unavailable: stay at 8",
            id="all metrics unavailable",
        ),
        pytest.param(
            steps.RecommendationStep(8, 8, 3, 1, blocked=True),
            "recommendation: none, 1 of 3 metrics unavailable: do not scale down from 8",
            id="scale down blocked by an unavailable metric",
        ),
        pytest.param(
            steps.RecommendationStep(8, 9, 2, 1, 0),
            "recommendation: 9 (1 of 2 metrics unavailable)",
            id="recommendation with an unavailable metric",
        ),
        pytest.param(
            steps.StabilizationStep(6, 11, 11, timedelta(minutes=5), Recommendation(11, AT - timedelta(minutes=5))),
            "stabilization: 11 until 14:03:20 (300 s window contains 11 from 13:58:20)",
            id="held by the stabilization window",
        ),
        pytest.param(
            steps.StabilizationStep(6, 6, 6, timedelta(minutes=5)),
            "stabilization: 6, unchanged by the 300 s window",
            id="unchanged by the stabilization window",
        ),
        pytest.param(steps.LimitStep(6, 6), "limits: 6, within policies and bounds", id="within limits"),
        pytest.param(steps.LimitStep(0, 2, ScalingLimit.MINIMUM), "limits: 2 (minReplicas)", id="minReplicas"),
        pytest.param(steps.LimitStep(30, 20, ScalingLimit.MAXIMUM), "limits: 20 (maxReplicas)", id="maxReplicas"),
        pytest.param(
            steps.LimitStep(20, 6, ScalingLimit.UP_RATE, 6, fixed_rate=True),
            "limits: 6 (default scale-up rate: double, or 4 replicas)",
            id="default scale-up rate",
        ),
        pytest.param(
            steps.LimitStep(20, 7, ScalingLimit.UP_RATE, 7, Policy("Pods", 2, 60), AT),
            "limits: 7 (policy allows 2 pods in 60 s, more at 14:03:20)",
            id="Pods policy",
        ),
        pytest.param(
            steps.LimitStep(1, 9, ScalingLimit.DOWN_RATE, 9, Policy("Percent", 10, 300)),
            "limits: 9 (policy allows 10 % in 300 s)",
            id="Percent policy",
        ),
        pytest.param(
            steps.LimitStep(2, 8, ScalingLimit.DOWN_RATE, 8),
            "limits: 8 (selectPolicy is Disabled for this direction)",
            id="disabled direction",
        ),
        pytest.param(
            steps.ScaleFromZeroStep(0, 2),
            "bounds: minReplicas was raised to 2 while at zero: scale to 2",
            id="minReplicas raised while at zero",
        ),
        pytest.param(
            steps.NotAppliedStep(NotAppliedReason.CONFLICT, 6, 3, conflicts=("HorizontalPodAutoscaler/shop/web",)),
            "not applied: the target is also scaled by HorizontalPodAutoscaler/shop/web; desired: 6 replicas",
            id="conflict",
        ),
        pytest.param(
            steps.NotAppliedStep(NotAppliedReason.PAUSED, 1, 3, AT),
            "not applied: paused until 14:03:20; desired: 1 replica",
            id="paused until a time",
        ),
        pytest.param(
            steps.NotAppliedStep(NotAppliedReason.PAUSED, 1, 3, AT.astimezone(timezone(timedelta(hours=2)))),
            "not applied: paused until 14:03:20; desired: 1 replica",
            id="paused until a time with an offset, in UTC",
        ),
        pytest.param(
            steps.NotAppliedStep(NotAppliedReason.PAUSED, 6, 3),
            "not applied: paused until spec.mode is changed; desired: 6 replicas",
            id="paused without end",
        ),
        pytest.param(
            steps.NotAppliedStep(NotAppliedReason.DRY_RUN, 6, 3),
            "not applied: spec.mode is DryRun; desired: 6 replicas",
            id="dry run",
        ),
        pytest.param(steps.ResultStep(3, 6), "result: 6 replicas, was 3", id="rescale"),
        pytest.param(steps.ResultStep(3, 3), "result: 3 replicas, unchanged", id="no rescale"),
        pytest.param(
            steps.WriteFailedStep(6, "forbidden"),
            "result: write of 6 replicas to the target failed: forbidden",
            id="failed write",
        ),
    ],
)
def test_step_is_rendered_as_one_line_with_a_rule(step: Step, expected: str) -> None:
    assert step_text(step) == expected
    assert rule(step)


def test_explanation_contains_every_step_of_a_decision() -> None:
    decision = decide_once(
        make_spec(make_external_metric(), make_resource_metric()),
        make_observation(external_reading(30), pod_reading(500, 500, 500, 500, 500), replicas=5),
        history=History(make_recommendations((5, 3600))),
    )

    explanation = explain(decision)

    assert [step.text for step in explanation.steps] == [
        "target: spec 5 replicas, status 5; bounds 1 to 100",
        (
            "queue_depth: proposes 6 replicas: average 6 per replica, target 5; "
            "ratio 1.2, outside the tolerance of 0.9 to 1.1: total / 5"
        ),
        "cpu: proposes no change from 5: utilization 50 %, target 50 %; ratio 1 is within the tolerance of 0.9 to 1.1",
        "recommendation: 6 (from queue_depth)",
        "stabilization: 6, unchanged by the 300 s window",
        "limits: 6, within policies and bounds",
        "result: 6 replicas, was 5",
    ]


def test_explanation_contains_the_time_of_the_next_change() -> None:
    decision = decide_once(
        make_spec(make_external_metric()),
        make_observation(external_reading(5), replicas=11),
        history=History(make_recommendations((11, 100))),
    )

    explanation = explain(decision)

    assert explanation.may_change_at == later(200)


def test_explained_step_separates_inputs_from_outputs() -> None:
    decision = decide_once(
        make_spec(make_external_metric(fallback=make_fallback())), make_observation(unavailable_reading(), replicas=3)
    )

    step = explain(decision).steps[1]

    assert (step.step, step.rule) == (
        "MetricUnavailable",
        "an unavailable metric makes no proposal and blocks scaling down",
    )
    assert step.inputs["failingSince"] == "2026-03-01T12:00:00Z"
    assert step.outputs == {"fallbackAt": "2026-03-01T12:03:00Z"}


def test_explanation_is_serialized_as_json() -> None:
    decision = decide_once()

    serialized = msgspec.json.decode(msgspec.json.encode(explain(decision)))

    assert [step["step"] for step in serialized["steps"]] == [
        "Target",
        "MetricProposal",
        "Recommendation",
        "Stabilization",
        "Limit",
        "Result",
    ]

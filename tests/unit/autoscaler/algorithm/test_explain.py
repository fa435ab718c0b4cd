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
    CONNECTION_REFUSED,
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


def proposal(calculation: Calculation, tolerance: Tolerance = TOLERANCE) -> steps.MetricProposalStep:
    return steps.MetricProposalStep("cpu", calculation.replicas, 4, tolerance, calculation)


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
            "cpu: proposes 5 replicas: utilization 50 %, target 30 %: ceil(50 / 30 * 3 pods) = 5; "
            "ratio 1.667 is outside the tolerance of 0.9 to 1.1",
            id="utilization",
        ),
        pytest.param(
            proposal(Calculation(2, CalculationRule.READY_PODS, 20_000, 15_000, 4 / 3, multiplier=1)),
            "cpu: proposes 2 replicas: value 20, target 15: ceil(20 / 15 * 1 pod) = 2; "
            "ratio 1.333 is outside the tolerance of 0.9 to 1.1",
            id="value with one pod",
        ),
        pytest.param(
            proposal(Calculation(4, CalculationRule.WITHIN_TOLERANCE, 5250, 5000, 1.05)),
            "cpu: proposes no change from 4: value 5.25, target 5: "
            "5.25 / 5 = 1.05 is within the tolerance of 0.9 to 1.1",
            id="within tolerance",
        ),
        pytest.param(
            proposal(
                Calculation(6, CalculationRule.ASSUMED_PODS, 900, 50, 1.8, 90, 1.34, 4, PodGroups(2, ("a",), ("b",)))
            ),
            "cpu: proposes 6 replicas: utilization 90 %, target 50 %; 67 % with 2 pods without a metric assumed at 0: "
            "ceil(67 / 50 * 4 pods) = 6; ratio 1.34 is outside the tolerance of 0.9 to 1.1",
            id="scale up with assumed values",
        ),
        pytest.param(
            proposal(
                Calculation(
                    3, CalculationRule.DIRECTION_REVERSED, 400, 500, 0.8, None, 1.02, 3, PodGroups(2, (), ("b",))
                ),
                Tolerance(0.01, 0.01),
            ),
            "cpu: proposes no change from 3: value 0.4, target 0.5; "
            "0.51 with 1 pod without a metric assumed at full usage: "
            "0.51 / 0.5 = 1.02 is outside the tolerance of 0.99 to 1.01 and reverses the direction",
            id="assumed values reverse the direction",
        ),
        pytest.param(
            proposal(Calculation(2, CalculationRule.FROM_ZERO, 8600, 4400, 8600 / 4400)),
            "cpu: proposes 2 replicas: value 8.6, target 4.4: ceil(8.6 / 4.4) = 2, no pods",
            id="from zero",
        ),
        pytest.param(
            proposal(Calculation(6, CalculationRule.TOTAL, 20_000, 10_000, 2.0, total=60_000)),
            "cpu: proposes 6 replicas: 20 per replica, target 10: ceil(60 / 10) = 6; "
            "ratio 2 is outside the tolerance of 0.9 to 1.1",
            id="average per replica",
        ),
        pytest.param(
            proposal(Calculation(3, CalculationRule.TOTAL, -(2**63), 5000, 2.4, total=12_000)),
            "cpu: proposes 3 replicas: total 12, target 5 per replica: ceil(12 / 5) = 3",
            id="average with no pods",
        ),
        pytest.param(unavailable(), "queue: unavailable (refused): connection refused", id="unavailable metric"),
        pytest.param(
            unavailable(failure=None),
            "queue: unavailable: connection refused",
            id="unavailable metric without failure class",
        ),
        pytest.param(
            unavailable(message=f"unable to get external metric shop/queue/nil: {CONNECTION_REFUSED}"),
            "queue: unavailable (refused): connection refused",
            id="unavailable external metric",
        ),
        pytest.param(
            unavailable(failing_since=AT, fallback_at=AT + timedelta(minutes=3), fallback_replicas=10),
            "queue: unavailable (refused): connection refused; failing since 14:03:20, "
            "fallback of 10 replicas at 14:06:20",
            id="unavailable metric with pending fallback",
        ),
        pytest.param(
            steps.MetricFallbackStep("queue", 10, "refused", AT, "Static", 10, 50),
            "queue: fallback proposes 10 replicas: failing since 14:03:20: refused",
            id="fallback",
        ),
        pytest.param(
            steps.MetricFallbackStep("queue", 50, "refused", AT, "UseMax", 10, 50),
            "queue: fallback proposes 50 replicas: failing since 14:03:20: refused; "
            "UseMax: the larger of 10 and the 50 at activation",
            id="fallback with UseMax",
        ),
        pytest.param(
            steps.MetricFallbackStep("queue", 10, "refused", AT, "UseMin", 10, 50),
            "queue: fallback proposes 10 replicas: failing since 14:03:20: refused; "
            "UseMin: the smaller of 10 and the 50 at activation",
            id="fallback with UseMin",
        ),
        pytest.param(
            steps.RecommendationStep(8, 8, 2, 2, blocked=True),
            "recommendation: none, all metrics are unavailable: stay at 8",
            id="all metrics unavailable",
        ),
        pytest.param(
            steps.RecommendationStep(8, 8, 1, 1, blocked=True),
            "recommendation: none, the metric is unavailable: stay at 8",
            id="the only metric unavailable",
        ),
        pytest.param(
            proposal(Calculation(56, CalculationRule.READY_PODS, 1100, 50, 2.2, 110, multiplier=25)),
            "cpu: proposes 56 replicas: utilization 110 %, target 50 %: "
            "ceil(110 / 50 * 25 pods) = ceil(55.00000000000001) = 56 in floating-point arithmetic; "
            "ratio 2.2 is outside the tolerance of 0.9 to 1.1",
            id="floating-point arithmetic yields one more",
        ),
        pytest.param(
            proposal(Calculation(4, CalculationRule.READY_PODS, 110_001, 100_000, 1.10001, multiplier=3)),
            "cpu: proposes 4 replicas: value 110.001, target 100: ceil(110.001 / 100 * 3 pods) = 4; "
            "ratio 1.10001 is outside the tolerance of 0.9 to 1.1",
            id="ratio just outside the tolerance",
        ),
        pytest.param(
            proposal(Calculation(2**31 - 1, CalculationRule.TOTAL, 10**16, 1, 1e16, total=10**16)),
            "cpu: proposes 2147483647 replicas: 10000000000000 per replica, target 0.001: "
            "ceil(10000000000000 / 0.001) is out of range: 2147483647; "
            "ratio 1e+16 is outside the tolerance of 0.9 to 1.1",
            id="replicas out of range",
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
            steps.NotAppliedStep(NotAppliedReason.PAUSED, 6, 3, annotation="true"),
            "not applied: paused by the annotation steadyscale.dev/paused, until it is removed; desired: 6 replicas",
            id="paused by the annotation",
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
            "queue_depth: proposes 6 replicas: 6 per replica, target 5: ceil(30 / 5) = 6; "
            "ratio 1.2 is outside the tolerance of 0.9 to 1.1"
        ),
        (
            "cpu: proposes no change from 5: utilization 50 %, target 50 %: "
            "50 / 50 = 1 is within the tolerance of 0.9 to 1.1"
        ),
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


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (steps.NotAppliedStep(NotAppliedReason.PAUSED, 1, 3, AT), "paused until 2026-03-01 14:03:20"),
        (
            steps.MetricUnavailableStep("queue", "no", UnavailableCause.RETRIEVAL, None, AT, AT + timedelta(days=2), 5),
            "failing since 2026-03-01 14:03:20, fallback of 5 replicas at 2026-03-03 14:03:20",
        ),
        (steps.MetricFallbackStep("queue", 5, "no", AT, "Static", 5, 3), "failing since 2026-03-01 14:03:20"),
    ],
    ids=["paused", "unavailable", "fallback"],
)
def test_time_on_another_day_than_the_decision_has_a_date(step: Step, expected: str) -> None:
    assert expected in step_text(step, (), AT + timedelta(days=1))
    assert "2026-03-01 " not in step_text(step, (), AT + timedelta(hours=1))

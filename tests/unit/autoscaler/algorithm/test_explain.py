"""The working in sentences: each step as a tired person reads it, and a whole decision."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from autoscaler.algorithm.explain import explain, rule, sentence
from autoscaler.types import steps
from autoscaler.types.history import History, Recommendation
from autoscaler.types.metric_result import Calculation, PodGroups, Rule, Tolerance, Trouble
from autoscaler.types.observation import FailureClass
from autoscaler.types.spec import Policy
from autoscaler.types.steps import Hold, Limit, Step
from tests.builders import (
    decide_once,
    later,
    make_external_metric,
    make_fallback,
    make_observation,
    make_resource_metric,
    make_spec,
    pods_say,
    queue_of,
    recommended,
    unreadable,
)

TENTH = Tolerance(0.1, 0.1)
AT = datetime(2026, 3, 1, 14, 3, 20, tzinfo=UTC)


def answered(calculation: Calculation) -> steps.MetricAnswered:
    return steps.MetricAnswered("cpu", calculation.replicas, 4, TENTH, calculation)


def failed(**parts: object) -> steps.MetricFailed:
    return msgspec.structs.replace(
        steps.MetricFailed("queue", "connection refused", Trouble.RETRIEVAL, FailureClass.REFUSED), **parts
    )


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param(
            steps.TargetSeen(1, 2, 0, 9), "the target asks for 1 replica and has 2; allowed: 0 to 9", id="the target"
        ),
        pytest.param(
            steps.TargetNotSeen("not found"),
            "the target's scale cannot be read, so nothing else was looked at: not found",
            id="no target",
        ),
        pytest.param(
            steps.SwitchedOff(scaling_to_zero=True),
            "the target is at zero and this autoscaler did not put it there, so it stays: set replicas to switch it on",
            id="switched off by hand",
        ),
        pytest.param(
            steps.SwitchedOff(scaling_to_zero=False),
            "the target is at zero and this autoscaler did not put it there, so it stays: set replicas to switch it on"
            " (feature gate HPAScaleToZero is off)",
            id="switched off because the feature is",
        ),
        pytest.param(
            steps.OutOfBounds(12, 10),
            "12 is above maxReplicas, so it goes to 10 at once, without asking any metric",
            id="too many",
        ),
        pytest.param(
            steps.OutOfBounds(1, 3),
            "1 is below minReplicas, so it goes to 3 at once, without asking any metric",
            id="too few",
        ),
        pytest.param(
            steps.SelectorRefused("SelectorRequired", "selector is required"),
            "it cannot be told which pods belong to the target: selector is required",
            id="a selector nobody can use",
        ),
        pytest.param(
            answered(Calculation(5, Rule.READY_PODS, 500, 30, 50 / 30, 50, multiplier=3)),
            "cpu asks for 5: 50 % of requests used where 30 % is wanted, so 1.667 times 3 pods",
            id="utilization",
        ),
        pytest.param(
            answered(Calculation(2, Rule.READY_PODS, 20_000, 15_000, 4 / 3, multiplier=1)),
            "cpu asks for 2: 20 where 15 is wanted, so 1.333 times 1 pod",
            id="a plain value over one pod",
        ),
        pytest.param(
            answered(Calculation(4, Rule.WITHIN_TOLERANCE, 5250, 5000, 1.05)),
            "cpu asks for no change from 4: 5.25 where 5 is wanted, and a ratio of 1.05 is tolerated from 0.9 to 1.1",
            id="within tolerance",
        ),
        pytest.param(
            answered(Calculation(4, Rule.ASSUMED_PODS, 900, 50, 1.8, 90, 1.34, 4, PodGroups(2, ("a",), ("b",)))),
            "cpu asks for 4: 90 % of requests used where 50 % is wanted, so 1.34 times 4 pods"
            " (2 pods without a number assumed idle)",
            id="growing with pods that have no number",
        ),
        pytest.param(
            answered(Calculation(3, Rule.WOULD_REVERSE, 400, 500, 0.8, None, 1.02, 3, PodGroups(2, (), ("b",)))),
            "cpu asks for no change from 3: 0.4 where 0.5 is wanted, but 1.02 with assumptions, "
            "which would turn the direction round (1 pod without a number assumed busy)",
            id="an assumption that would reverse",
        ),
        pytest.param(
            answered(Calculation(2, Rule.FROM_ZERO, 8600, 4400, 8600 / 4400)),
            "cpu asks for 2: 8.6 where 4.4 is wanted, so 1.955 rounded up, as there are no pods yet",
            id="from zero",
        ),
        pytest.param(
            answered(Calculation(3, Rule.TOTAL, 3334, 4400, 0.757)),
            "cpu asks for 3: 3.334 where 4.4 is wanted, so the total divided by 4.4",
            id="an average of the whole",
        ),
        pytest.param(
            answered(Calculation(3, Rule.TOTAL, -(2**63), 5000, 2.4)),
            "cpu asks for 3: 12 in all where 5 for each pod is wanted, so the total divided by 5",
            id="an average of the whole over no pods",
        ),
        pytest.param(failed(), "queue has no say (refused): connection refused", id="a failed metric"),
        pytest.param(failed(failure=None), "queue has no say: connection refused", id="a failure without a class"),
        pytest.param(
            failed(failing_since=AT, fallback_at=AT + timedelta(minutes=3), fallback_replicas=10),
            "queue has no say (refused): connection refused; failing since 14:03:20, "
            "its fallback of 10 replicas is due at 14:06:20",
            id="a failed metric whose clock runs",
        ),
        pytest.param(
            steps.MetricFellBack("queue", 10, "refused", AT, "Static", 10, 50),
            "queue is unreadable since 14:03:20, so its fallback asks for 10",
            id="a fallback",
        ),
        pytest.param(
            steps.MetricFellBack("queue", 50, "refused", AT, "UseMax", 10, 50),
            "queue is unreadable since 14:03:20, so its fallback asks for 50: "
            "the larger of 10 and the 50 there were then",
            id="the larger",
        ),
        pytest.param(
            steps.MetricFellBack("queue", 10, "refused", AT, "UseMin", 10, 50),
            "queue is unreadable since 14:03:20, so its fallback asks for 10: "
            "the smaller of 10 and the 50 there were then",
            id="the smaller",
        ),
        pytest.param(
            steps.Combined(8, 8, 2, 2, blocked=True), "no metric has a say, so it stays at 8", id="all silent"
        ),
        pytest.param(
            steps.Combined(8, 8, 3, 1, blocked=True),
            "1 of 3 metrics have no say, so it does not go down from 8",
            id="half blind",
        ),
        pytest.param(
            steps.Combined(8, 9, 2, 1, 0),
            "together they ask for 9; 1 of 2 have no say, which is enough to stay or grow",
            id="enough to grow",
        ),
        pytest.param(
            steps.Stabilized(6, 11, 11, timedelta(minutes=5), Recommendation(11, AT - timedelta(minutes=5))),
            "wants 6, holds 11 until 14:03:20: the 300 s window still contains 11 from 13:58:20",
            id="the window holds",
        ),
        pytest.param(
            steps.Stabilized(6, 6, 6, timedelta(minutes=5)), "wants 6; the 300 s window changes nothing", id="no change"
        ),
        pytest.param(steps.Limited(6, 6), "wants 6, which is within all limits", id="within limits"),
        pytest.param(steps.Limited(0, 2, Limit.MINIMUM), "wants 0, but minReplicas is 2", id="the minimum"),
        pytest.param(steps.Limited(30, 20, Limit.MAXIMUM), "wants 30, but maxReplicas is 20", id="the maximum"),
        pytest.param(
            steps.Limited(20, 6, Limit.UP_RATE, 6, fixed_rate=True),
            "wants 20, may go to 6: without behavior it at most doubles, or goes to 4",
            id="the fixed rate",
        ),
        pytest.param(
            steps.Limited(20, 7, Limit.UP_RATE, 7, Policy("Pods", 2, 60), AT),
            "wants 20, may go to 7: the policies allow 2 pods in 60 s; more at 14:03:20",
            id="a policy of pods",
        ),
        pytest.param(
            steps.Limited(1, 9, Limit.DOWN_RATE, 9, Policy("Percent", 10, 300)),
            "wants 1, may go to 9: the policies allow 10 % in 300 s",
            id="a policy of percent",
        ),
        pytest.param(
            steps.Limited(2, 8, Limit.DOWN_RATE, 8),
            "wants 2, may go to 8: selectPolicy is Disabled for this direction",
            id="a disabled direction",
        ),
        pytest.param(
            steps.Woken(0, 2), "minReplicas was raised to 2 while at zero, so it wakes to 2", id="woken by minReplicas"
        ),
        pytest.param(
            steps.Held(Hold.RIVAL, 6, 3, rivals=("HorizontalPodAutoscaler/shop/web",)),
            "not carried out, because the target is also scaled by HorizontalPodAutoscaler/shop/web; "
            "it would be 6 replicas",
            id="a rival",
        ),
        pytest.param(
            steps.Held(Hold.PAUSED, 1, 3, AT),
            "not carried out, because it is paused until 14:03:20; it would be 1 replica",
            id="paused for a while",
        ),
        pytest.param(
            steps.Held(Hold.PAUSED, 6, 3),
            "not carried out, because it is paused until spec.mode is changed; it would be 6 replicas",
            id="paused for good",
        ),
        pytest.param(
            steps.Held(Hold.DRY_RUN, 6, 3),
            "not carried out, because spec.mode is DryRun; it would be 6 replicas",
            id="a dry run",
        ),
        pytest.param(steps.Concluded(3, 6), "goes from 3 to 6", id="a rescale"),
        pytest.param(steps.Concluded(3, 3), "stays at 3", id="no rescale"),
        pytest.param(
            steps.WriteFailed(6, "forbidden"), "6 replicas could not be written to the target: forbidden", id="no write"
        ),
    ],
)
def test_a_step_is_one_sentence(step: Step, expected: str) -> None:
    assert sentence(step) == expected
    assert rule(step)


def test_a_decision_is_explained_from_the_first_number_to_the_last() -> None:
    decision = decide_once(
        make_spec(make_external_metric(), make_resource_metric()),
        make_observation(queue_of(30), pods_say(500, 500, 500, 500, 500), replicas=5),
        past=History(recommended((5, 3600))),
    )

    explanation = explain(decision)

    assert explanation.summary == "5 → 6; decided by nothing: this is what the metrics ask for"
    assert [step.sentence for step in explanation.working] == [
        "the target asks for 5 replicas and has 5; allowed: 1 to 100",
        "queue_depth asks for 6: 6 where 5 is wanted, so the total divided by 5",
        (
            "cpu asks for no change from 5: 50 % of requests used where 50 % is wanted, "
            "and a ratio of 1 is tolerated from 0.9 to 1.1"
        ),
        "together they ask for 6 (queue_depth)",
        "wants 6; the 300 s window changes nothing",
        "wants 6, which is within all limits",
        "goes from 5 to 6",
    ]


def test_the_explanation_says_what_bound_and_when_it_lets_go() -> None:
    decision = decide_once(
        make_spec(make_external_metric()),
        make_observation(queue_of(5), replicas=11),
        past=History(recommended((11, 100))),
    )

    explanation = explain(decision)

    assert explanation.bound == "the stabilization window"
    assert explanation.may_change_at == later(200)
    assert explanation.summary == "stays at 11; decided by the stabilization window; may change at 12:03:20"


def test_numbers_that_went_in_are_told_apart_from_those_that_came_out() -> None:
    decision = decide_once(
        make_spec(make_external_metric(fallback=make_fallback())), make_observation(unreadable(), replicas=3)
    )

    step = explain(decision).working[1]

    assert (step.step, step.rule) == (
        "MetricFailed",
        "a metric that cannot be told has no say, and blocks going down",
    )
    assert step.went_in["failingSince"] == "2026-03-01T12:00:00Z"
    assert step.came_out == {"fallbackAt": "2026-03-01T12:03:00Z"}


def test_an_explanation_prints_as_json() -> None:
    decision = decide_once()

    printed = msgspec.json.decode(msgspec.json.encode(explain(decision)))

    assert [step["step"] for step in printed["working"]] == [
        "TargetSeen",
        "MetricAnswered",
        "Combined",
        "Stabilized",
        "Limited",
        "Concluded",
    ]

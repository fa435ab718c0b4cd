"""Where a pass goes, what holds it back, what bound it, and when its answer may change by itself."""

import pytest
from msgspec.structs import replace

from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.limiting_factor import Bound
from autoscaler.types.metric_result import Tolerance
from autoscaler.types.observation import BadSelector, Hop, ScaleTarget, TargetUnreadable
from autoscaler.types.spec import Metric, ObjectReference, Policy
from autoscaler.types.status import Condition, Status
from autoscaler.types.steps import (
    Combined,
    Concluded,
    Held,
    Hold,
    Limit,
    Limited,
    MetricAnswered,
    OutOfBounds,
    SelectorRefused,
    Stabilized,
    SwitchedOff,
    TargetNotSeen,
    TargetSeen,
    Woken,
)
from tests.builders import (
    AT_ONCE,
    NO_ZERO,
    NOW,
    REFUSED,
    SETTINGS,
    Step,
    at_zero_by_us,
    condition_of,
    decide_once,
    external_slot,
    later,
    long_at,
    make_behavior,
    make_condition,
    make_external_metric,
    make_fallback,
    make_observation,
    make_pods,
    make_pods_metric,
    make_resource_metric,
    make_rules,
    make_spec,
    make_target,
    object_says,
    passes_at,
    pods_say,
    queue_of,
    reasons_of,
    recommended,
    rescaled,
    run_passes,
    told,
    unreadable,
)

BROKEN = unreadable()
SEEN = ("True", "SucceededGetScale")
RESCALED = ("True", "SucceededRescale")
ACTIVE = ("True", "ValidMetricFound")
FREE = ("False", "DesiredWithinRange")
AWAKE = ("False", "NotScaledToZero")


# --- a whole decision ------------------------------------------------------------------------------------------------


def test_a_decision_is_told_whole():
    decision = decide_once(make_spec(maximum=50), make_observation(queue_of(25)), past=long_at(3))

    message = "the HPA was able to successfully calculate a replica count from external metric queue_depth(nil)"
    assert (decision.at, decision.replicas, decision.scale_to) == (NOW, 5, 5)
    assert decision.status == Status(
        desired_replicas=5,
        current_metrics=(external_slot(average="8334m"),),
        observed_generation=1,
        last_scale_time=NOW,
        current_replicas=3,
        conditions=(
            Condition(
                "AbleToScale",
                "True",
                NOW,
                "SucceededRescale",
                "the HPA controller was able to update the target scale to 5",
            ),
            Condition("ScalingActive", "True", NOW, "ValidMetricFound", message),
            Condition(
                "ScalingLimited",
                "False",
                NOW,
                "DesiredWithinRange",
                "the desired count is within the acceptable range",
            ),
            Condition(
                "ScaledToZero",
                "False",
                NOW,
                "NotScaledToZero",
                "the HPA controller did not scale the workload to zero",
            ),
        ),
    )
    assert told(decision) == [
        ("SuccessfulRescale", "New size: 5; reason: external metric queue_depth(nil) above target")
    ]
    assert decision.history == History((Recommendation(5, NOW),))
    assert (decision.status_changed, decision.error, decision.failed, decision.blames_spec) == (
        True,
        None,
        False,
        False,
    )

    seen, answered, *rest = decision.working
    assert seen == TargetSeen(3, 3, 1, 50)
    assert isinstance(answered, MetricAnswered)
    assert (answered.metric, answered.replicas, answered.tolerance) == ("queue_depth", 5, Tolerance(0.1, 0.1))
    assert rest == [
        Combined(3, 5, 1, 0, 0),
        Stabilized(5, 5, 3, SETTINGS.downscale_stabilization),
        Limited(5, 5, rate=6, fixed_rate=True),
        Concluded(3, 5),
    ]


# --- routes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "error"),
    [
        pytest.param(
            TargetUnreadable("no matches", Hop.MAPPING),
            "unable to determine resource for scale target reference: no matches",
            id="no resource is known for the kind",
        ),
        pytest.param(
            TargetUnreadable("not found"),
            "failed to query scale subresource for Deployment/shop/web: not found",
            id="the scale is not given",
        ),
    ],
)
def test_without_a_target_only_conditions_change(lost, error):
    before = Status(desired_replicas=7, current_replicas=6, current_metrics=(external_slot(average="5"),))

    decision = decide_once(seen=make_observation(target=lost), status=before)

    message = f"the HPA controller was unable to get the target's current scale: {lost.message}"
    condition = Condition("AbleToScale", "False", NOW, "FailedGetScale", message)
    assert decision.status == replace(before, conditions=(condition,))
    assert (decision.replicas, decision.scale_to, decision.history) == (7, None, History())
    assert (decision.error, decision.failed, decision.blames_spec) == (error, True, False)
    assert (told(decision), decision.working) == ([("FailedGetScale", lost.message)], (TargetNotSeen(lost.message),))
    assert decision.bound is Bound.TARGET


def test_a_reference_that_cannot_be_read_is_the_users_fault():
    spec = make_spec(scale_target_ref=ObjectReference("Deployment", "web", "apps/v1/beta"))

    decision = decide_once(spec)

    assert decision.error == (
        "invalid API version in scale target reference: unexpected GroupVersion string: apps/v1/beta"
    )
    assert (decision.failed, decision.blames_spec) == (True, True)


@pytest.mark.parametrize(
    ("gates", "kept"),
    [
        pytest.param(FeatureGates(), {"ScaledToZero": ("False", "NotScaledToZero")}, id="with the gate it is kept"),
        pytest.param(NO_ZERO, {}, id="without the gate the condition goes"),
    ],
)
def test_a_zero_by_hand_is_left_alone(gates, kept):
    before = Status(
        desired_replicas=4,
        current_metrics=(external_slot(),),
        conditions=(make_condition("ScaledToZero", "False", reason="NotScaledToZero"),),
    )

    decision = decide_once(make_spec(minimum=0), make_observation(replicas=0), status=before, gates=gates)

    assert (decision.replicas, decision.scale_to, decision.status.current_metrics) == (0, None, None)
    assert decision.status.desired_replicas == 0
    assert reasons_of(decision) == {**kept, "AbleToScale": SEEN, "ScalingActive": ("False", "ScalingDisabled")}
    assert decision.working[1:] == (SwitchedOff(scaling_to_zero=gates.HPAScaleToZero),)
    assert (decision.bound, decision.events) == (Bound.SWITCHED_OFF, ())


@pytest.mark.parametrize(
    ("replicas", "goal", "reason", "bound"),
    [
        pytest.param(
            30, 20, "Current number of replicas above Spec.MaxReplicas", Bound.MAXIMUM, id="above the maximum"
        ),
        pytest.param(1, 5, "Current number of replicas below Spec.MinReplicas", Bound.MINIMUM, id="below the minimum"),
    ],
)
def test_outside_the_bounds_it_goes_to_the_bound_and_asks_no_metric(replicas, goal, reason, bound):
    spec = make_spec(minimum=5, maximum=20, behavior=AT_ONCE)

    decision = decide_once(spec, make_observation(BROKEN, replicas=replicas), past=long_at(replicas))

    assert (decision.scale_to, decision.status.current_metrics, decision.error) == (goal, None, None)
    assert told(decision) == [("SuccessfulRescale", f"New size: {goal}; reason: {reason}")]
    assert decision.working[1:] == (OutOfBounds(replicas, goal), Concluded(replicas, goal))
    assert decision.bound is bound
    event = (ScaleEvent(abs(goal - replicas), NOW),)
    assert (decision.history.scale_ups, decision.history.scale_downs) == (
        (event, ()) if goal > replicas else ((), event)
    )
    assert decision.history.recommendations == recommended((replicas, 36000))


@pytest.mark.parametrize(
    ("seen", "event", "reason", "message"),
    [
        pytest.param(
            make_observation(target=make_target(selector="")),
            ("SelectorRequired", "selector is required"),
            "InvalidSelector",
            "the HPA target's scale is missing a selector",
            id="there is none",
        ),
        pytest.param(
            make_observation(target=ScaleTarget(3, 3, "app=", "found nothing")),
            (
                "InvalidSelector",
                "couldn't convert selector into a corresponding internal selector object: found nothing",
            ),
            "InvalidSelector",
            "couldn't convert selector into a corresponding internal selector object: found nothing",
            id="it does not parse",
        ),
        pytest.param(
            make_observation(selecting=("shop/other", "shop/web")),
            (
                "AmbiguousSelector",
                "pods by selector app=web are controlled by more than one HPA (e.g. [shop/other shop/web])",
            ),
            "AmbiguousSelector",
            "pods by selector app=web are controlled by more than one HPA (e.g. [shop/other shop/web])",
            id="another autoscaler selects the same pods",
        ),
    ],
)
def test_a_bad_selector_ends_the_pass(seen, event, reason, message):
    decision = decide_once(seen=seen, status=Status(desired_replicas=9, current_metrics=(external_slot(),)))

    assert (decision.replicas, decision.scale_to, decision.failed) == (3, None, True)
    assert (decision.status.desired_replicas, decision.status.current_metrics) == (9, None)
    assert condition_of(decision, "ScalingActive") == ("False", reason, message)
    assert told(decision) == [event, ("FailedComputeMetricsReplicas", event[1])]
    assert decision.error == (
        f"failed to compute desired number of replicas based on listed metrics for Deployment/shop/web: {event[1]}"
    )
    assert decision.working[1:] == (SelectorRefused(*event),)
    assert decision.bound is Bound.SELECTOR


def test_no_metric_at_all_is_the_users_fault():
    decision = decide_once(make_spec(metrics=()), make_observation(readings=()))

    message = "spec.metrics is empty: name at least one metric, or leave it out for cpu at 80 %"
    assert condition_of(decision, "ScalingActive") == ("False", "NoMetrics", message)
    assert (decision.replicas, decision.failed, decision.blames_spec) == (3, True, True)
    assert told(decision) == [("FailedComputeMetricsReplicas", message)]


def test_a_metric_of_an_unknown_type_is_the_users_fault():
    decision = decide_once(make_spec(Metric(type="Weather")), make_observation(BROKEN))

    assert told(decision)[0] == ("InvalidMetricSourceType", 'unknown metric source type "Weather"')
    assert (decision.failed, decision.blames_spec) == (True, True)


def test_a_reading_of_the_wrong_kind_is_a_mistake_of_the_observer():
    with pytest.raises(TypeError, match="a ObjectReading was observed where a ExternalReading belongs"):
        decide_once(seen=make_observation(object_says(1)))


def test_a_reading_for_each_metric_is_needed():
    with pytest.raises(ValueError, match="zip"):
        decide_once(seen=make_observation(queue_of(1), queue_of(2)))


# --- what Kubernetes does, end to end (Appendix A of the specification) -----------------------------------------------

Q = make_external_metric("q")
TWO = (make_external_metric("bad"), Q)
BAD = f"unable to get external metric shop/bad/nil: {REFUSED}"
FIRST_ERROR = f"first error is: failed to get bad external metric value: failed to get bad external metric: {BAD}"
ONE_OF_TWO = f"invalid metrics (1 invalid out of 2), {FIRST_ERROR}"
BOTH = f"invalid metrics (2 invalid out of 2), {FIRST_ERROR}"
STUCK = "failed to compute desired number of replicas based on listed metrics for Deployment/shop/web: "
FAILING = ("False", "FailedGetExternalMetric")
BELOW = "Current number of replicas below Spec.MinReplicas"
ABOVE_TARGET = "external metric q(nil) above target"
PERCENT_ONLY = make_behavior(up=make_rules(Policy("Percent", 100, 15)))


def golden(given, expect, name):
    return pytest.param({"replicas": 3, "readings": (), "status": Status(), "past": History()} | given, expect, id=name)


def success(size, reason):
    return ("SuccessfulRescale", f"New size: {size}; reason: {reason}")


@pytest.mark.parametrize(
    ("given", "expect"),
    [
        golden(
            {"spec": make_spec(Q, maximum=50), "readings": (queue_of(100),)},
            (6, {"ScalingLimited": ("True", "ScaleUpLimit")}, [success(6, ABOVE_TARGET)], None),
            "without behavior it at most doubles",
        ),
        golden(
            {"spec": make_spec(Q, maximum=5), "readings": (queue_of(100),)},
            (5, {"ScalingLimited": ("True", "TooManyReplicas")}, [success(5, ABOVE_TARGET)], None),
            "the maximum is nearer than double",
        ),
        golden(
            {"spec": make_spec(Q), "replicas": 8, "readings": (queue_of(10),)},
            (None, {"AbleToScale": ("True", "ScaleDownStabilized")}, [], None),
            "the first pass does not scale down",
        ),
        golden(
            {"spec": make_spec(*TWO), "readings": (BROKEN, queue_of(30))},
            (
                6,
                {"ScalingActive": ACTIVE},
                [("FailedGetExternalMetric", BAD), success(6, ABOVE_TARGET)],
                ONE_OF_TWO,
            ),
            "with one of two metrics silent it may go up",
        ),
        golden(
            {"spec": make_spec(*TWO), "replicas": 8, "readings": (BROKEN, queue_of(30))},
            (
                None,
                {"AbleToScale": SEEN, "ScalingActive": FAILING},
                [("FailedGetExternalMetric", BAD), ("FailedComputeMetricsReplicas", ONE_OF_TWO)],
                STUCK + ONE_OF_TWO,
            ),
            "with one of two metrics silent it may not go down",
        ),
        golden(
            {"spec": make_spec(*TWO), "replicas": 6, "readings": (BROKEN, queue_of(30))},
            (
                None,
                {"AbleToScale": ("True", "ReadyForNewScale"), "ScalingActive": ACTIVE},
                [("FailedGetExternalMetric", BAD)],
                ONE_OF_TWO,
            ),
            "with one of two metrics silent it may stay",
        ),
        golden(
            {"spec": make_spec(*TWO), "replicas": 6, "readings": (BROKEN, BROKEN)},
            (
                None,
                {"ScalingActive": FAILING},
                [
                    ("FailedGetExternalMetric", BAD),
                    ("FailedGetExternalMetric", BAD.replace("bad", "q")),
                    ("FailedComputeMetricsReplicas", BOTH),
                ],
                STUCK + BOTH,
            ),
            "with both silent both are told",
        ),
        golden(
            {"spec": make_spec(Q, maximum=20), "replicas": 30, "readings": (queue_of(1),)},
            (
                20,
                {"AbleToScale": RESCALED, "ScaledToZero": AWAKE},
                [success(20, "Current number of replicas above Spec.MaxReplicas")],
                None,
            ),
            "above the maximum no other condition is touched",
        ),
        golden(
            {"spec": make_spec(Q, minimum=0), "replicas": 0, "status": at_zero_by_us(), "readings": (queue_of(12),)},
            (3, {"ScaledToZero": AWAKE}, [success(3, ABOVE_TARGET)], None),
            "from its own zero it wakes",
        ),
        golden(
            {"spec": make_spec(Q, minimum=0), "replicas": 0, "status": at_zero_by_us(), "readings": (queue_of(0),)},
            (
                None,
                {"AbleToScale": ("True", "ReadyForNewScale"), "ScaledToZero": ("True", "ScaledToZero")},
                [],
                None,
            ),
            "at its own zero it may stay",
        ),
        golden(
            {
                "spec": make_spec(Q, minimum=2, behavior=make_behavior()),
                "replicas": 0,
                "status": at_zero_by_us(),
                "readings": (queue_of(0),),
            },
            (2, {"ScalingLimited": FREE}, [success(2, BELOW)], None),
            "a minimum raised at its own zero is a floor",
        ),
        golden(
            {
                "spec": make_spec(Q, minimum=0, behavior=PERCENT_ONLY),
                "replicas": 0,
                "status": at_zero_by_us(),
                "readings": (queue_of(12),),
            },
            (None, {"ScalingLimited": ("True", "ScaleUpLimit")}, [], None),
            "no percentage of zero leaves zero",
        ),
        golden(
            {
                "spec": make_spec(make_external_metric("q", value="5"), minimum=0),
                "replicas": 0,
                "status": at_zero_by_us(),
                "readings": (queue_of(100),),
            },
            (4, {"ScalingLimited": ("True", "ScaleUpLimit")}, [success(4, ABOVE_TARGET)], None),
            "from zero the fixed rate allows four",
        ),
        golden(
            {
                "spec": make_spec(Q),
                "replicas": 4,
                "past": History(recommended((10, 60))),
                "readings": (queue_of(20),),
            },
            (8, {"ScalingLimited": ("True", "ScaleUpLimit")}, [success(8, "")], None),
            "an older recommendation may raise it and gives no reason",
        ),
        golden(
            {"spec": make_spec(Q, minimum=5), "replicas": 1, "readings": (queue_of(1),)},
            (5, {"AbleToScale": RESCALED, "ScaledToZero": AWAKE}, [success(5, BELOW)], None),
            "below the minimum it rises to it",
        ),
    ],
)
def test_kubernetes_answers(given, expect):
    scale_to, conditions, events, error = expect
    seen = make_observation(*given["readings"], replicas=given["replicas"])

    decision = decide_once(given["spec"], seen, status=given["status"], past=given["past"])

    assert decision.scale_to == scale_to
    assert reasons_of(decision) | conditions == reasons_of(decision)
    assert (told(decision), decision.error) == (events, error)
    assert decision.replicas == (given["replicas"] if scale_to is None else scale_to)


def test_a_clamp_says_nothing_of_metrics_and_limits():
    decision = decide_once(make_spec(maximum=20), make_observation(replicas=30))

    assert reasons_of(decision) == {"AbleToScale": RESCALED, "ScaledToZero": AWAKE}


def test_a_silent_metric_leaves_an_empty_slot():
    decision = decide_once(make_spec(*TWO), make_observation(BROKEN, queue_of(30), replicas=8))

    unread, read = decision.status.current_metrics
    assert (unread.type, read) == ("", external_slot("q", average="3750m"))


def test_without_the_gate_it_still_goes_to_zero_and_is_stuck_there():
    spec = make_spec(Q, minimum=0, behavior=AT_ONCE)

    down, after = run_passes(spec, passes_at((0, 15), queue_of(0)), replicas=2, gates=NO_ZERO)

    assert (down.scale_to, down.status.condition("ScaledToZero")) == (0, None)
    assert reasons_of(after)["ScalingActive"] == ("False", "ScalingDisabled")


def test_with_the_gate_it_goes_to_zero_and_remembers_that():
    decision = decide_once(make_spec(Q, minimum=0, behavior=AT_ONCE), make_observation(queue_of(0)), past=long_at(3))

    assert (decision.scale_to, reasons_of(decision)["ScaledToZero"]) == (0, ("True", "ScaledToZero"))


def test_an_unchanged_second_pass_has_nothing_to_write():
    first, second = run_passes(make_spec(), passes_at((0, 15), queue_of(15)))

    assert (first.status_changed, second.status_changed) == (True, False)
    assert second.status == first.status


def test_the_generation_is_told_only_with_its_gate():
    assert decide_once().status.observed_generation == 1
    assert decide_once(gates=FeatureGates(HPAGeneration=False)).status.observed_generation is None


# --- tolerance -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queue", "replicas"),
    [
        pytest.param(45, 9, id="a ratio of 1.125 is beyond 0.1 upwards"),
        pytest.param(43, 8, id="a ratio of 1.075 is not"),
        pytest.param(30, 8, id="a ratio of 0.75 is within 0.3 downwards"),
        pytest.param(25, 5, id="a ratio of 0.625 is not"),
    ],
)
def test_each_direction_has_its_tolerance(queue, replicas):
    rules = make_rules(window=0, tolerance="0.3")
    spec = make_spec(make_external_metric(), behavior=make_behavior(down=rules))

    assert decide_once(spec, make_observation(queue_of(queue), replicas=8), past=long_at(8)).replicas == replicas


def test_without_its_gate_a_tolerance_is_not_honoured():
    spec = make_spec(behavior=make_behavior(up=make_rules(tolerance="0.5"), down=make_rules(window=0, tolerance="0.5")))
    off = FeatureGates(HPAConfigurableTolerance=False)

    assert decide_once(spec, make_observation(queue_of(20)), past=long_at(3)).replicas == 3
    assert decide_once(spec, make_observation(queue_of(20)), past=long_at(3), gates=off).replicas == 4
    assert decide_once(make_spec(), make_observation(queue_of(20)), settings=Settings(tolerance=0.5)).replicas == 3


# --- what holds a decision back --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "rivals", "hold", "reason", "message", "bound"),
    [
        pytest.param(
            {"mode": "DryRun"},
            (),
            Held(Hold.DRY_RUN, 5, 3),
            "DryRun",
            "spec.mode is DryRun; it would be 5 replicas",
            Bound.DRY_RUN,
            id="a dry run",
        ),
        pytest.param(
            {"mode": "Paused"},
            (),
            Held(Hold.PAUSED, 5, 3),
            "Paused",
            "scaling is paused until spec.mode is changed; it would be 5 replicas",
            Bound.PAUSED,
            id="a pause without end",
        ),
        pytest.param(
            {"mode": "Paused", "paused_until": later(90)},
            (),
            Held(Hold.PAUSED, 5, 3, later(90)),
            "Paused",
            "scaling is paused until 2026-03-01T12:01:30Z; it would be 5 replicas",
            Bound.PAUSED,
            id="a pause until later",
        ),
        pytest.param(
            {},
            ("HorizontalPodAutoscaler/shop/web", "PodAutoscaler/shop/web2"),
            Held(Hold.RIVAL, 5, 3, rivals=("HorizontalPodAutoscaler/shop/web", "PodAutoscaler/shop/web2")),
            "AmbiguousTarget",
            "the target is also scaled by HorizontalPodAutoscaler/shop/web, PodAutoscaler/shop/web2: "
            "remove one of them; nothing is scaled until then",
            Bound.RIVAL,
            id="another owner",
        ),
        pytest.param(
            {"mode": "DryRun"},
            ("HorizontalPodAutoscaler/shop/web",),
            Held(Hold.RIVAL, 5, 3, rivals=("HorizontalPodAutoscaler/shop/web",)),
            "AmbiguousTarget",
            "the target is also scaled by HorizontalPodAutoscaler/shop/web: "
            "remove one of them; nothing is scaled until then",
            Bound.RIVAL,
            id="another owner is told before a dry run",
        ),
    ],
)
def test_a_decision_is_made_and_told_but_not_carried_out(spec, rivals, hold, reason, message, bound):
    past = long_at(3)

    decision = decide_once(
        make_spec(behavior=AT_ONCE, **spec), make_observation(queue_of(25), rivals=rivals), past=past
    )

    assert (decision.replicas, decision.scale_to, decision.events) == (5, None, ())
    assert condition_of(decision, "AbleToScale") == ("False", reason, message)
    assert reasons_of(decision)["ScalingActive"] == ACTIVE
    assert (decision.status.desired_replicas, decision.status.last_scale_time) == (5, None)
    assert (decision.history.scale_ups, decision.status.condition("ScaledToZero")) == ((), None)
    assert decision.working[-1] == hold
    assert decision.bound is bound
    assert decision.may_change_at == hold.until


def test_a_pause_that_is_over_holds_nothing():
    decision = decide_once(make_spec(mode="Paused", paused_until=NOW), make_observation(queue_of(25)))

    assert (decision.scale_to, reasons_of(decision)["AbleToScale"]) == (5, RESCALED)


def test_an_active_mode_holds_nothing():
    assert decide_once(make_spec(mode="Active"), make_observation(queue_of(25))).scale_to == 5


def test_a_hold_is_told_also_when_nothing_is_known():
    decision = decide_once(make_spec(mode="DryRun"), make_observation(BROKEN))

    assert condition_of(decision, "AbleToScale") == (
        "False",
        "DryRun",
        "spec.mode is DryRun; it would be 3 replicas",
    )
    assert decision.bound is Bound.DRY_RUN


def test_a_hold_is_told_at_a_bound_too():
    decision = decide_once(make_spec(maximum=2, mode="DryRun"), make_observation(replicas=5))

    assert (decision.replicas, decision.scale_to, decision.bound) == (2, None, Bound.DRY_RUN)


def test_a_pause_waits_and_then_lets_go():
    spec = make_spec(mode="Paused", paused_until=later(60))

    paused, still, free = run_passes(spec, passes_at((0, 59, 60), queue_of(25)))

    assert [one.scale_to for one in (paused, still, free)] == [None, None, 5]


# --- what bound it, and until when -----------------------------------------------------------------------------------

SLOWLY = make_behavior(up=make_rules(Policy("Pods", 2, 60)), down=make_rules(Policy("Pods", 1, 120), window=0))


@pytest.mark.parametrize(
    ("spec", "replicas", "queue", "past", "bound", "may_change_at"),
    [
        pytest.param(make_spec(), 3, 25, long_at(3), Bound.NOTHING, None, id="nothing"),
        pytest.param(make_spec(), 3, 16, long_at(3), Bound.TOLERANCE, None, id="the tolerance"),
        pytest.param(
            make_spec(),
            8,
            10,
            History(recommended((8, 100))),
            Bound.WINDOW,
            later(200),
            id="the window, until it passes",
        ),
        pytest.param(
            make_spec(behavior=make_behavior(up=make_rules(window=60))),
            3,
            25,
            History(recommended((3, 20))),
            Bound.WINDOW,
            later(40),
            id="the window upwards",
        ),
        pytest.param(make_spec(), 3, 100, long_at(3), Bound.DOUBLING, None, id="the fixed rate"),
        pytest.param(
            make_spec(behavior=SLOWLY),
            5,
            100,
            History(recommended((5, 9999)), scale_ups=rescaled((1, 45), (1, 20))),
            Bound.UP_POLICY,
            later(15),
            id="the policies upwards, until the first rescale is forgotten",
        ),
        pytest.param(
            make_spec(behavior=SLOWLY),
            5,
            1,
            History(recommended((5, 9999)), scale_downs=rescaled((1, 20))),
            Bound.DOWN_POLICY,
            later(100),
            id="the policies downwards",
        ),
        pytest.param(
            make_spec(behavior=SLOWLY),
            5,
            100,
            long_at(5),
            Bound.UP_POLICY,
            None,
            id="the policies, which have nothing to forget",
        ),
        pytest.param(
            make_spec(behavior=make_behavior(down=make_rules(window=0, select="Disabled"))),
            5,
            1,
            History(recommended((5, 9999)), scale_downs=rescaled((1, 20))),
            Bound.DOWN_POLICY,
            None,
            id="a direction that is switched off",
        ),
        pytest.param(make_spec(maximum=5), 3, 100, long_at(3), Bound.MAXIMUM, None, id="the maximum"),
        pytest.param(make_spec(minimum=2), 3, 1, long_at(3), Bound.MINIMUM, None, id="the minimum"),
    ],
)
def test_what_bound_it_and_when_that_may_change(spec, replicas, queue, past, bound, may_change_at):
    decision = decide_once(spec, make_observation(queue_of(queue), replicas=replicas), past=past)

    assert (decision.bound, decision.may_change_at) == (bound, may_change_at)


def test_silent_metrics_bind_and_a_clock_lets_go_of_them():
    spec = make_spec(make_external_metric(fallback=make_fallback()))

    waiting, _ = run_passes(spec, passes_at((0, 15), BROKEN))
    without = decide_once(seen=make_observation(BROKEN))

    assert (waiting.bound, waiting.may_change_at) == (Bound.UNREADABLE_METRICS, later(180))
    assert (without.bound, without.may_change_at) == (Bound.UNREADABLE_METRICS, None)


def test_a_floor_binds():
    spec = make_spec(minimum=2, behavior=make_behavior())
    decision = decide_once(spec, make_observation(queue_of(0), replicas=0), status=at_zero_by_us())

    assert (decision.working[-2], decision.bound) == (Woken(0, 2), Bound.MINIMUM)


def test_what_decides_at_zero_with_no_proposal_above_it_is_the_metric():
    spec = make_spec(minimum=0)
    decision = decide_once(spec, make_observation(queue_of(0), replicas=0), status=at_zero_by_us(), past=long_at(0))

    assert (decision.replicas, decision.bound) == (0, Bound.NOTHING)


def test_the_earliest_change_is_told():
    spec = make_spec(make_external_metric(fallback=make_fallback(2)), make_external_metric("backlog"), behavior=SLOWLY)
    past = History(recommended((5, 9999)), scale_ups=rescaled((1, 45)))

    decision = decide_once(spec, make_observation(BROKEN, queue_of(100), replicas=5), past=past)

    assert decision.may_change_at == later(15)


# --- history ---------------------------------------------------------------------------------------------------------


def test_the_first_sight_of_a_target_is_remembered_as_a_recommendation():
    decision = decide_once(make_spec(minimum=5), make_observation(replicas=1))

    assert decision.history.recommendations == (Recommendation(1, NOW),)


def test_a_pass_that_is_stuck_remembers_no_recommendation():
    past = History(recommended((3, 10)))

    assert decide_once(seen=make_observation(BROKEN), past=past).history == past


def test_a_rescale_is_remembered_only_with_behavior():
    seen = make_observation(queue_of(25))

    with_behavior = decide_once(make_spec(behavior=AT_ONCE), seen)
    without = decide_once(make_spec(), seen)

    assert (with_behavior.history.scale_ups, without.history.scale_ups) == ((ScaleEvent(2, NOW),), ())


def test_scaling_follows_the_world_over_many_passes():
    spec = make_spec(make_resource_metric(), make_pods_metric())
    steps = [
        Step(0, (pods_say(1000, 1000, 1000), pods_say(10000, 10000, 10000))),
        Step(15, (pods_say(*[500] * 6), pods_say(*[10000] * 6))),
        Step(30, (pods_say(*[100] * 6), pods_say(*[2000] * 6))),
        Step(331, (pods_say(*[100] * 6), pods_say(*[2000] * 6))),
    ]

    assert [one.replicas for one in run_passes(spec, steps)] == [6, 6, 6, 2]


def test_a_metric_selector_that_does_not_parse_is_told_as_it_is():
    decision = decide_once(seen=make_observation(BadSelector('"=" is not a valid label selector operator')))

    assert told(decision)[0] == ("FailedGetExternalMetric", '"=" is not a valid label selector operator')


def test_pods_of_the_target_may_be_fewer_than_it_asks_for():
    spec = make_spec(make_external_metric(value="5"))
    seen = make_observation(queue_of(10), replicas=10, pods=make_pods(5))

    assert decide_once(spec, seen, past=long_at(10)).replicas == 10


def test_limits_are_named_as_the_condition_names_them():
    decision = decide_once(make_spec(maximum=5), make_observation(queue_of(100)))

    (limited,) = [step for step in decision.working if isinstance(step, Limited)]
    assert limited == Limited(20, 5, Limit.MAXIMUM, 6, fixed_rate=True)

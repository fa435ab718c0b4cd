"""Whole decisions: routes, conditions, events, modes, limiting factors and history."""

import pytest
from msgspec.structs import replace

from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.limiting_factor import LimitingFactor
from autoscaler.types.metric_result import Tolerance
from autoscaler.types.observation import BadSelector, ScaleTarget, TargetReadStage, UnavailableTarget
from autoscaler.types.spec import Metric, ObjectReference, Policy
from autoscaler.types.status import Condition, Status
from autoscaler.types.steps import (
    InvalidSelectorStep,
    LimitStep,
    MetricProposalStep,
    NotAppliedReason,
    NotAppliedStep,
    OutOfBoundsStep,
    RecommendationStep,
    ResultStep,
    ScaleFromZeroStep,
    ScalingDisabledStep,
    ScalingLimit,
    StabilizationStep,
    TargetStep,
    TargetUnavailableStep,
)
from tests.builders import (
    CONNECTION_REFUSED,
    NO_STABILIZATION,
    NOW,
    SCALE_TO_ZERO_GATE_OFF,
    SETTINGS,
    ReconcileInput,
    condition_content,
    condition_reasons,
    decide_once,
    event_messages,
    external_reading,
    external_status,
    inputs_at,
    later,
    make_behavior,
    make_condition,
    make_external_metric,
    make_fallback,
    make_observation,
    make_pods,
    make_pods_metric,
    make_recommendations,
    make_resource_metric,
    make_rules,
    make_scale_events,
    make_spec,
    make_target,
    object_reading,
    pod_reading,
    run_reconciles,
    scaled_to_zero_status,
    settled_history,
    unavailable_reading,
)

UNAVAILABLE = unavailable_reading()
SCALE_READ = ("True", "SucceededGetScale")
RESCALED = ("True", "SucceededRescale")
ACTIVE = ("True", "ValidMetricFound")
NOT_LIMITED = ("False", "DesiredWithinRange")
NOT_AT_ZERO = ("False", "NotScaledToZero")


# --- complete decision -----------------------------------------------------------------------------------------------


def test_decision_contains_status_events_history_and_steps():
    decision = decide_once(make_spec(maximum=50), make_observation(external_reading(25)), history=settled_history(3))

    message = "the HPA was able to successfully calculate a replica count from external metric queue_depth(nil)"
    assert (decision.at, decision.replicas, decision.scale_to) == (NOW, 5, 5)
    assert decision.status == Status(
        desired_replicas=5,
        current_metrics=(external_status(average="8334m"),),
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
    assert event_messages(decision) == [
        ("SuccessfulRescale", "New size: 5; reason: external metric queue_depth(nil) above target")
    ]
    assert decision.history == History((Recommendation(5, NOW),))
    assert (decision.status_changed, decision.error, decision.failed, decision.caused_by_spec) == (
        True,
        None,
        False,
        False,
    )

    target, proposal, *rest = decision.steps
    assert target == TargetStep(3, 3, 1, 50)
    assert isinstance(proposal, MetricProposalStep)
    assert (proposal.metric, proposal.replicas, proposal.tolerance) == ("queue_depth", 5, Tolerance(0.1, 0.1))
    assert rest == [
        RecommendationStep(3, 5, 1, 0, 0),
        StabilizationStep(5, 5, 3, SETTINGS.downscale_stabilization),
        LimitStep(5, 5, rate=6, fixed_rate=True),
        ResultStep(3, 5),
    ]


# --- routes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "error"),
    [
        pytest.param(
            UnavailableTarget("no matches", TargetReadStage.MAPPING),
            "unable to determine resource for scale target reference: no matches",
            id="unknown resource of the kind",
        ),
        pytest.param(
            UnavailableTarget("not found"),
            "failed to query scale subresource for Deployment/shop/web: not found",
            id="scale not found",
        ),
    ],
)
def test_unavailable_target_changes_only_conditions(target, error):
    before = Status(desired_replicas=7, current_replicas=6, current_metrics=(external_status(average="5"),))

    decision = decide_once(observation=make_observation(target=target), status=before)

    message = f"the HPA controller was unable to get the target's current scale: {target.message}"
    condition = Condition("AbleToScale", "False", NOW, "FailedGetScale", message)
    assert decision.status == replace(before, conditions=(condition,))
    assert (decision.replicas, decision.scale_to, decision.history) == (7, None, History())
    assert (decision.error, decision.failed, decision.caused_by_spec) == (error, True, False)
    assert (event_messages(decision), decision.steps) == (
        [("FailedGetScale", target.message)],
        (TargetUnavailableStep(target.message),),
    )
    assert decision.limiting_factor is LimitingFactor.TARGET_UNAVAILABLE


def test_invalid_target_reference_is_caused_by_the_spec():
    spec = make_spec(scale_target_ref=ObjectReference("Deployment", "web", "apps/v1/beta"))

    decision = decide_once(spec)

    assert decision.error == (
        "invalid API version in scale target reference: unexpected GroupVersion string: apps/v1/beta"
    )
    assert (decision.failed, decision.caused_by_spec) == (True, True)


@pytest.mark.parametrize(
    ("gates", "kept"),
    [
        pytest.param(FeatureGates(), {"ScaledToZero": ("False", "NotScaledToZero")}, id="gate on: condition is kept"),
        pytest.param(SCALE_TO_ZERO_GATE_OFF, {}, id="gate off: condition is removed"),
    ],
)
def test_zero_replicas_set_by_a_user_disable_scaling(gates, kept):
    before = Status(
        desired_replicas=4,
        current_metrics=(external_status(),),
        conditions=(make_condition("ScaledToZero", "False", reason="NotScaledToZero"),),
    )

    decision = decide_once(make_spec(minimum=0), make_observation(replicas=0), status=before, gates=gates)

    assert (decision.replicas, decision.scale_to, decision.status.current_metrics) == (0, None, None)
    assert decision.status.desired_replicas == 0
    assert condition_reasons(decision) == {
        **kept,
        "AbleToScale": SCALE_READ,
        "ScalingActive": ("False", "ScalingDisabled"),
    }
    assert decision.steps[1:] == (ScalingDisabledStep(scale_to_zero_enabled=gates.HPAScaleToZero),)
    assert (decision.limiting_factor, decision.events) == (LimitingFactor.SCALING_DISABLED, ())


@pytest.mark.parametrize(
    ("replicas", "expected", "reason", "factor"),
    [
        pytest.param(
            30,
            20,
            "Current number of replicas above Spec.MaxReplicas",
            LimitingFactor.MAX_REPLICAS,
            id="above maxReplicas",
        ),
        pytest.param(
            1,
            5,
            "Current number of replicas below Spec.MinReplicas",
            LimitingFactor.MIN_REPLICAS,
            id="below minReplicas",
        ),
    ],
)
def test_target_outside_its_bounds_is_scaled_to_the_bound_without_metrics(replicas, expected, reason, factor):
    spec = make_spec(minimum=5, maximum=20, behavior=NO_STABILIZATION)

    decision = decide_once(spec, make_observation(UNAVAILABLE, replicas=replicas), history=settled_history(replicas))

    assert (decision.scale_to, decision.status.current_metrics, decision.error) == (expected, None, None)
    assert event_messages(decision) == [("SuccessfulRescale", f"New size: {expected}; reason: {reason}")]
    assert decision.steps[1:] == (OutOfBoundsStep(replicas, expected), ResultStep(replicas, expected))
    assert decision.limiting_factor is factor
    event = (ScaleEvent(abs(expected - replicas), NOW),)
    assert (decision.history.scale_ups, decision.history.scale_downs) == (
        (event, ()) if expected > replicas else ((), event)
    )
    assert decision.history.recommendations == make_recommendations((replicas, 36000))


@pytest.mark.parametrize(
    ("observation", "event", "reason", "message"),
    [
        pytest.param(
            make_observation(target=make_target(selector="")),
            ("SelectorRequired", "selector is required"),
            "InvalidSelector",
            "the HPA target's scale is missing a selector",
            id="no selector",
        ),
        pytest.param(
            make_observation(target=ScaleTarget(3, 3, "app=", "found nothing")),
            (
                "InvalidSelector",
                "couldn't convert selector into a corresponding internal selector object: found nothing",
            ),
            "InvalidSelector",
            "couldn't convert selector into a corresponding internal selector object: found nothing",
            id="invalid selector",
        ),
        pytest.param(
            make_observation(selected_by=("shop/other", "shop/web")),
            (
                "AmbiguousSelector",
                "pods by selector app=web are controlled by more than one HPA (e.g. [shop/other shop/web])",
            ),
            "AmbiguousSelector",
            "pods by selector app=web are controlled by more than one HPA (e.g. [shop/other shop/web])",
            id="ambiguous selector",
        ),
    ],
)
def test_unusable_selector_ends_the_decision(observation, event, reason, message):
    decision = decide_once(
        observation=observation, status=Status(desired_replicas=9, current_metrics=(external_status(),))
    )

    assert (decision.replicas, decision.scale_to, decision.failed) == (3, None, True)
    assert (decision.status.desired_replicas, decision.status.current_metrics) == (9, None)
    assert condition_content(decision, "ScalingActive") == ("False", reason, message)
    assert event_messages(decision) == [event, ("FailedComputeMetricsReplicas", event[1])]
    assert decision.error == (
        f"failed to compute desired number of replicas based on listed metrics for Deployment/shop/web: {event[1]}"
    )
    assert decision.steps[1:] == (InvalidSelectorStep(*event),)
    assert decision.limiting_factor is LimitingFactor.INVALID_SELECTOR


def test_empty_metrics_are_caused_by_the_spec():
    decision = decide_once(make_spec(metrics=()), make_observation(readings=()))

    message = "spec.metrics is empty: add at least one metric, or remove the field for the default of cpu at 80 %"
    assert condition_content(decision, "ScalingActive") == ("False", "NoMetrics", message)
    assert (decision.replicas, decision.failed, decision.caused_by_spec) == (3, True, True)
    assert event_messages(decision) == [("FailedComputeMetricsReplicas", message)]


def test_unknown_metric_type_is_caused_by_the_spec():
    decision = decide_once(make_spec(Metric(type="Weather")), make_observation(UNAVAILABLE))

    assert event_messages(decision)[0] == ("InvalidMetricSourceType", 'unknown metric source type "Weather"')
    assert (decision.failed, decision.caused_by_spec) == (True, True)


def test_reading_of_the_wrong_kind_raises_type_error():
    with pytest.raises(TypeError, match="expected a ExternalReading, observed a ObjectReading"):
        decide_once(observation=make_observation(object_reading(1)))


def test_number_of_readings_must_equal_number_of_metrics():
    with pytest.raises(ValueError, match="zip"):
        decide_once(observation=make_observation(external_reading(1), external_reading(2)))


# --- behaviour of Kubernetes, end to end -----------------------------------------------------------------------------

Q = make_external_metric("q")
TWO = (make_external_metric("bad"), Q)
BAD = f"unable to get external metric shop/bad/nil: {CONNECTION_REFUSED}"
FIRST_ERROR = f"first error is: failed to get bad external metric value: failed to get bad external metric: {BAD}"
ONE_OF_TWO = f"invalid metrics (1 invalid out of 2), {FIRST_ERROR}"
BOTH = f"invalid metrics (2 invalid out of 2), {FIRST_ERROR}"
NOT_COMPUTED = "failed to compute desired number of replicas based on listed metrics for Deployment/shop/web: "
FAILING = ("False", "FailedGetExternalMetric")
BELOW = "Current number of replicas below Spec.MinReplicas"
ABOVE_TARGET = "external metric q(nil) above target"
PERCENT_ONLY = make_behavior(up=make_rules(Policy("Percent", 100, 15)))


def example(given, expect, name):
    return pytest.param(
        {"replicas": 3, "readings": (), "status": Status(), "history": History()} | given, expect, id=name
    )


def success(size, reason):
    return ("SuccessfulRescale", f"New size: {size}; reason: {reason}")


@pytest.mark.parametrize(
    ("given", "expect"),
    [
        example(
            {"spec": make_spec(Q, maximum=50), "readings": (external_reading(100),)},
            (6, {"ScalingLimited": ("True", "ScaleUpLimit")}, [success(6, ABOVE_TARGET)], None),
            "without behavior the replicas are at most doubled",
        ),
        example(
            {"spec": make_spec(Q, maximum=5), "readings": (external_reading(100),)},
            (5, {"ScalingLimited": ("True", "TooManyReplicas")}, [success(5, ABOVE_TARGET)], None),
            "maxReplicas is lower than double",
        ),
        example(
            {"spec": make_spec(Q), "replicas": 8, "readings": (external_reading(10),)},
            (None, {"AbleToScale": ("True", "ScaleDownStabilized")}, [], None),
            "first reconcile does not scale down",
        ),
        example(
            {"spec": make_spec(*TWO), "readings": (UNAVAILABLE, external_reading(30))},
            (
                6,
                {"ScalingActive": ACTIVE},
                [("FailedGetExternalMetric", BAD), success(6, ABOVE_TARGET)],
                ONE_OF_TWO,
            ),
            "one of two metrics unavailable allows scaling up",
        ),
        example(
            {"spec": make_spec(*TWO), "replicas": 8, "readings": (UNAVAILABLE, external_reading(30))},
            (
                None,
                {"AbleToScale": SCALE_READ, "ScalingActive": FAILING},
                [("FailedGetExternalMetric", BAD), ("FailedComputeMetricsReplicas", ONE_OF_TWO)],
                NOT_COMPUTED + ONE_OF_TWO,
            ),
            "one of two metrics unavailable blocks scaling down",
        ),
        example(
            {"spec": make_spec(*TWO), "replicas": 6, "readings": (UNAVAILABLE, external_reading(30))},
            (
                None,
                {"AbleToScale": ("True", "ReadyForNewScale"), "ScalingActive": ACTIVE},
                [("FailedGetExternalMetric", BAD)],
                ONE_OF_TWO,
            ),
            "one of two metrics unavailable allows no change",
        ),
        example(
            {"spec": make_spec(*TWO), "replicas": 6, "readings": (UNAVAILABLE, UNAVAILABLE)},
            (
                None,
                {"ScalingActive": FAILING},
                [
                    ("FailedGetExternalMetric", BAD),
                    ("FailedGetExternalMetric", BAD.replace("bad", "q")),
                    ("FailedComputeMetricsReplicas", BOTH),
                ],
                NOT_COMPUTED + BOTH,
            ),
            "both metrics unavailable are both reported",
        ),
        example(
            {"spec": make_spec(Q, maximum=20), "replicas": 30, "readings": (external_reading(1),)},
            (
                20,
                {"AbleToScale": RESCALED, "ScaledToZero": NOT_AT_ZERO},
                [success(20, "Current number of replicas above Spec.MaxReplicas")],
                None,
            ),
            "above maxReplicas no other condition is set",
        ),
        example(
            {
                "spec": make_spec(Q, minimum=0),
                "replicas": 0,
                "status": scaled_to_zero_status(),
                "readings": (external_reading(12),),
            },
            (3, {"ScaledToZero": NOT_AT_ZERO}, [success(3, ABOVE_TARGET)], None),
            "scale up after scaling to zero",
        ),
        example(
            {
                "spec": make_spec(Q, minimum=0),
                "replicas": 0,
                "status": scaled_to_zero_status(),
                "readings": (external_reading(0),),
            },
            (
                None,
                {"AbleToScale": ("True", "ReadyForNewScale"), "ScaledToZero": ("True", "ScaledToZero")},
                [],
                None,
            ),
            "no change after scaling to zero",
        ),
        example(
            {
                "spec": make_spec(Q, minimum=2, behavior=make_behavior()),
                "replicas": 0,
                "status": scaled_to_zero_status(),
                "readings": (external_reading(0),),
            },
            (2, {"ScalingLimited": NOT_LIMITED}, [success(2, BELOW)], None),
            "raised minReplicas after scaling to zero",
        ),
        example(
            {
                "spec": make_spec(Q, minimum=0, behavior=PERCENT_ONLY),
                "replicas": 0,
                "status": scaled_to_zero_status(),
                "readings": (external_reading(12),),
            },
            (None, {"ScalingLimited": ("True", "ScaleUpLimit")}, [], None),
            "percent policy cannot scale up from zero",
        ),
        example(
            {
                "spec": make_spec(make_external_metric("q", value="5"), minimum=0),
                "replicas": 0,
                "status": scaled_to_zero_status(),
                "readings": (external_reading(100),),
            },
            (4, {"ScalingLimited": ("True", "ScaleUpLimit")}, [success(4, ABOVE_TARGET)], None),
            "default rate allows 4 replicas from zero",
        ),
        example(
            {
                "spec": make_spec(Q),
                "replicas": 4,
                "history": History(make_recommendations((10, 60))),
                "readings": (external_reading(20),),
            },
            (8, {"ScalingLimited": ("True", "ScaleUpLimit")}, [success(8, "")], None),
            "older recommendation raises the replicas without a reason",
        ),
        example(
            {"spec": make_spec(Q, minimum=5), "replicas": 1, "readings": (external_reading(1),)},
            (5, {"AbleToScale": RESCALED, "ScaledToZero": NOT_AT_ZERO}, [success(5, BELOW)], None),
            "below minReplicas",
        ),
    ],
)
def test_decision_equals_that_of_kubernetes(given, expect):
    scale_to, conditions, events, error = expect
    observation = make_observation(*given["readings"], replicas=given["replicas"])

    decision = decide_once(given["spec"], observation, status=given["status"], history=given["history"])

    assert decision.scale_to == scale_to
    assert condition_reasons(decision) | conditions == condition_reasons(decision)
    assert (event_messages(decision), decision.error) == (events, error)
    assert decision.replicas == (given["replicas"] if scale_to is None else scale_to)


def test_moving_to_a_bound_sets_no_condition_of_metrics_and_limits():
    decision = decide_once(make_spec(maximum=20), make_observation(replicas=30))

    assert condition_reasons(decision) == {"AbleToScale": RESCALED, "ScaledToZero": NOT_AT_ZERO}


def test_unavailable_metric_has_an_empty_status_entry():
    decision = decide_once(make_spec(*TWO), make_observation(UNAVAILABLE, external_reading(30), replicas=8))

    unread, read = decision.status.current_metrics or ()
    assert (unread.type, read) == ("", external_status("q", average="3750m"))


def test_scale_to_zero_with_the_gate_off_disables_scaling():
    spec = make_spec(Q, minimum=0, behavior=NO_STABILIZATION)

    down, after = run_reconciles(
        spec, inputs_at((0, 15), external_reading(0)), replicas=2, gates=SCALE_TO_ZERO_GATE_OFF
    )

    assert (down.scale_to, down.status.condition("ScaledToZero")) == (0, None)
    assert condition_reasons(after)["ScalingActive"] == ("False", "ScalingDisabled")


def test_scale_to_zero_with_the_gate_on_sets_the_condition():
    decision = decide_once(
        make_spec(Q, minimum=0, behavior=NO_STABILIZATION),
        make_observation(external_reading(0)),
        history=settled_history(3),
    )

    assert (decision.scale_to, condition_reasons(decision)["ScaledToZero"]) == (0, ("True", "ScaledToZero"))


def test_unchanged_second_reconcile_does_not_change_the_status():
    first, second = run_reconciles(make_spec(), inputs_at((0, 15), external_reading(15)))

    assert (first.status_changed, second.status_changed) == (True, False)
    assert second.status == first.status


def test_observed_generation_needs_its_feature_gate():
    assert decide_once().status.observed_generation == 1
    assert decide_once(gates=FeatureGates(HPAGeneration=False)).status.observed_generation is None


# --- tolerance -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queue", "replicas"),
    [
        pytest.param(45, 9, id="1.125 exceeds the scale-up tolerance of 0.1"),
        pytest.param(43, 8, id="1.075 is within the scale-up tolerance of 0.1"),
        pytest.param(30, 8, id="0.75 is within the scale-down tolerance of 0.3"),
        pytest.param(25, 5, id="0.625 exceeds the scale-down tolerance of 0.3"),
    ],
)
def test_tolerance_per_direction(queue, replicas):
    rules = make_rules(window=0, tolerance="0.3")
    spec = make_spec(make_external_metric(), behavior=make_behavior(down=rules))

    assert (
        decide_once(spec, make_observation(external_reading(queue), replicas=8), history=settled_history(8)).replicas
        == replicas
    )


def test_configured_tolerance_needs_its_feature_gate():
    spec = make_spec(behavior=make_behavior(up=make_rules(tolerance="0.5"), down=make_rules(window=0, tolerance="0.5")))
    off = FeatureGates(HPAConfigurableTolerance=False)

    assert decide_once(spec, make_observation(external_reading(20)), history=settled_history(3)).replicas == 3
    assert (
        decide_once(spec, make_observation(external_reading(20)), history=settled_history(3), gates=off).replicas == 4
    )
    assert (
        decide_once(make_spec(), make_observation(external_reading(20)), settings=Settings(tolerance=0.5)).replicas == 3
    )


# --- mode and conflicts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "conflicts", "step", "reason", "message", "factor"),
    [
        pytest.param(
            {"mode": "DryRun"},
            (),
            NotAppliedStep(NotAppliedReason.DRY_RUN, 5, 3),
            "DryRun",
            "spec.mode is DryRun; desired replicas: 5",
            LimitingFactor.DRY_RUN,
            id="dry run",
        ),
        pytest.param(
            {"mode": "Paused"},
            (),
            NotAppliedStep(NotAppliedReason.PAUSED, 5, 3),
            "Paused",
            "scaling is paused until spec.mode is changed; desired replicas: 5",
            LimitingFactor.PAUSED,
            id="paused without end",
        ),
        pytest.param(
            {"mode": "Paused", "paused_until": later(90)},
            (),
            NotAppliedStep(NotAppliedReason.PAUSED, 5, 3, later(90)),
            "Paused",
            "scaling is paused until 2026-03-01T12:01:30Z; desired replicas: 5",
            LimitingFactor.PAUSED,
            id="paused until a time",
        ),
        pytest.param(
            {},
            ("HorizontalPodAutoscaler/shop/web", "PodAutoscaler/shop/web2"),
            NotAppliedStep(
                NotAppliedReason.CONFLICT,
                5,
                3,
                conflicts=("HorizontalPodAutoscaler/shop/web", "PodAutoscaler/shop/web2"),
            ),
            "AmbiguousTarget",
            "the target is also scaled by HorizontalPodAutoscaler/shop/web, PodAutoscaler/shop/web2: "
            "remove one of them; this PodAutoscaler does not scale it until then",
            LimitingFactor.CONFLICT,
            id="conflict",
        ),
        pytest.param(
            {"mode": "DryRun"},
            ("HorizontalPodAutoscaler/shop/web",),
            NotAppliedStep(NotAppliedReason.CONFLICT, 5, 3, conflicts=("HorizontalPodAutoscaler/shop/web",)),
            "AmbiguousTarget",
            "the target is also scaled by HorizontalPodAutoscaler/shop/web: "
            "remove one of them; this PodAutoscaler does not scale it until then",
            LimitingFactor.CONFLICT,
            id="conflict takes precedence over dry run",
        ),
    ],
)
def test_decision_is_reported_but_not_applied(spec, conflicts, step, reason, message, factor):
    decision = decide_once(
        make_spec(behavior=NO_STABILIZATION, **spec),
        make_observation(external_reading(25), conflicts=conflicts),
        history=settled_history(3),
    )

    assert (decision.replicas, decision.scale_to, decision.events) == (5, None, ())
    assert condition_content(decision, "AbleToScale") == ("False", reason, message)
    active = ("False", "AmbiguousTarget") if conflicts else ACTIVE
    assert condition_reasons(decision)["ScalingActive"] == active
    assert (decision.status.desired_replicas, decision.status.last_scale_time) == (5, None)
    assert (decision.history.scale_ups, decision.status.condition("ScaledToZero")) == ((), None)
    assert decision.steps[-1] == step
    assert decision.limiting_factor is factor
    assert "mode" not in factor  # an annotation pauses as well
    assert decision.may_change_at == step.until


def test_pause_that_has_ended_has_no_effect():
    decision = decide_once(make_spec(mode="Paused", paused_until=NOW), make_observation(external_reading(25)))

    assert (decision.scale_to, condition_reasons(decision)["AbleToScale"]) == (5, RESCALED)


def test_mode_active_scales():
    assert decide_once(make_spec(mode="Active"), make_observation(external_reading(25))).scale_to == 5


def test_dry_run_is_reported_although_all_metrics_are_unavailable():
    decision = decide_once(make_spec(mode="DryRun"), make_observation(UNAVAILABLE))

    assert condition_content(decision, "AbleToScale") == (
        "False",
        "DryRun",
        "spec.mode is DryRun; desired replicas: 3",
    )
    assert decision.limiting_factor is LimitingFactor.DRY_RUN


def test_dry_run_is_reported_outside_the_bounds():
    decision = decide_once(make_spec(maximum=2, mode="DryRun"), make_observation(replicas=5))

    assert (decision.replicas, decision.scale_to, decision.limiting_factor) == (2, None, LimitingFactor.DRY_RUN)


def test_scaling_resumes_when_the_pause_ends():
    spec = make_spec(mode="Paused", paused_until=later(60))

    paused, still, free = run_reconciles(spec, inputs_at((0, 59, 60), external_reading(25)))

    assert [one.scale_to for one in (paused, still, free)] == [None, None, 5]


# --- limiting factor and next change ---------------------------------------------------------------------------------

SLOW_POLICIES = make_behavior(up=make_rules(Policy("Pods", 2, 60)), down=make_rules(Policy("Pods", 1, 120), window=0))


@pytest.mark.parametrize(
    ("spec", "replicas", "queue", "history", "factor", "may_change_at"),
    [
        pytest.param(make_spec(), 3, 25, settled_history(3), LimitingFactor.NONE, None, id="none"),
        pytest.param(make_spec(), 3, 16, settled_history(3), LimitingFactor.TOLERANCE, None, id="tolerance"),
        pytest.param(
            make_spec(),
            8,
            10,
            History(make_recommendations((8, 100))),
            LimitingFactor.STABILIZATION_WINDOW,
            later(200),
            id="scale-down stabilization window",
        ),
        pytest.param(
            make_spec(behavior=make_behavior(up=make_rules(window=60))),
            3,
            25,
            History(make_recommendations((3, 20))),
            LimitingFactor.STABILIZATION_WINDOW,
            later(40),
            id="scale-up stabilization window",
        ),
        pytest.param(
            make_spec(),
            3,
            100,
            settled_history(3),
            LimitingFactor.DEFAULT_SCALE_UP_RATE,
            None,
            id="default scale-up rate",
        ),
        pytest.param(
            make_spec(behavior=SLOW_POLICIES),
            5,
            100,
            History(make_recommendations((5, 9999)), scale_ups=make_scale_events((1, 45), (1, 20))),
            LimitingFactor.SCALE_UP_POLICY,
            later(15),
            id="scaleUp policies, until the first rescale leaves the period",
        ),
        pytest.param(
            make_spec(behavior=SLOW_POLICIES),
            5,
            1,
            History(make_recommendations((5, 9999)), scale_downs=make_scale_events((1, 20))),
            LimitingFactor.SCALE_DOWN_POLICY,
            later(100),
            id="scaleDown policies",
        ),
        pytest.param(
            make_spec(behavior=SLOW_POLICIES),
            5,
            100,
            settled_history(5),
            LimitingFactor.SCALE_UP_POLICY,
            None,
            id="scaleUp policies without rescales in the period",
        ),
        pytest.param(
            make_spec(behavior=make_behavior(down=make_rules(window=0, select="Disabled"))),
            5,
            1,
            History(make_recommendations((5, 9999)), scale_downs=make_scale_events((1, 20))),
            LimitingFactor.SCALE_DOWN_POLICY,
            None,
            id="disabled direction",
        ),
        pytest.param(
            make_spec(maximum=5), 3, 100, settled_history(3), LimitingFactor.MAX_REPLICAS, None, id="maxReplicas"
        ),
        pytest.param(
            make_spec(minimum=2), 3, 1, settled_history(3), LimitingFactor.MIN_REPLICAS, None, id="minReplicas"
        ),
    ],
)
def test_limiting_factor_and_next_change(spec, replicas, queue, history, factor, may_change_at):
    decision = decide_once(spec, make_observation(external_reading(queue), replicas=replicas), history=history)

    assert (decision.limiting_factor, decision.may_change_at) == (factor, may_change_at)


def test_unavailable_metrics_limit_until_their_fallback():
    spec = make_spec(make_external_metric(fallback=make_fallback()))

    waiting, _ = run_reconciles(spec, inputs_at((0, 15), UNAVAILABLE))
    without = decide_once(observation=make_observation(UNAVAILABLE))

    assert (waiting.limiting_factor, waiting.may_change_at) == (LimitingFactor.METRICS_UNAVAILABLE, later(180))
    assert (without.limiting_factor, without.may_change_at) == (LimitingFactor.METRICS_UNAVAILABLE, None)


def test_raised_min_replicas_after_scaling_to_zero_is_the_limiting_factor():
    spec = make_spec(minimum=2, behavior=make_behavior())
    decision = decide_once(spec, make_observation(external_reading(0), replicas=0), status=scaled_to_zero_status())

    assert (decision.steps[-2], decision.limiting_factor) == (ScaleFromZeroStep(0, 2), LimitingFactor.MIN_REPLICAS)


def test_proposal_of_zero_after_scaling_to_zero_has_no_limiting_factor():
    spec = make_spec(minimum=0)
    decision = decide_once(
        spec,
        make_observation(external_reading(0), replicas=0),
        status=scaled_to_zero_status(),
        history=settled_history(0),
    )

    assert (decision.replicas, decision.limiting_factor) == (0, LimitingFactor.NONE)


def test_next_change_is_the_earliest_of_all():
    spec = make_spec(
        make_external_metric(fallback=make_fallback(2)), make_external_metric("backlog"), behavior=SLOW_POLICIES
    )
    history = History(make_recommendations((5, 9999)), scale_ups=make_scale_events((1, 45)))

    decision = decide_once(spec, make_observation(UNAVAILABLE, external_reading(100), replicas=5), history=history)

    assert decision.may_change_at == later(15)


# --- history ---------------------------------------------------------------------------------------------------------


def test_first_reconcile_seeds_the_history_with_the_current_replicas():
    decision = decide_once(make_spec(minimum=5), make_observation(replicas=1))

    assert decision.history.recommendations == (Recommendation(1, NOW),)


def test_blocked_decision_records_no_recommendation():
    history = History(make_recommendations((3, 10)))

    assert decide_once(observation=make_observation(UNAVAILABLE), history=history).history == history


def test_rescale_is_recorded_only_with_behavior():
    observation = make_observation(external_reading(25))

    with_behavior = decide_once(make_spec(behavior=NO_STABILIZATION), observation)
    without = decide_once(make_spec(), observation)

    assert (with_behavior.history.scale_ups, without.history.scale_ups) == ((ScaleEvent(2, NOW),), ())


def test_scaling_over_several_reconciles():
    spec = make_spec(make_resource_metric(), make_pods_metric())
    inputs = [
        ReconcileInput(0, (pod_reading(1000, 1000, 1000), pod_reading(10000, 10000, 10000))),
        ReconcileInput(15, (pod_reading(*[500] * 6), pod_reading(*[10000] * 6))),
        ReconcileInput(30, (pod_reading(*[100] * 6), pod_reading(*[2000] * 6))),
        ReconcileInput(331, (pod_reading(*[100] * 6), pod_reading(*[2000] * 6))),
    ]

    assert [one.replicas for one in run_reconciles(spec, inputs)] == [6, 6, 6, 2]


def test_invalid_metric_selector_is_reported_unchanged():
    decision = decide_once(observation=make_observation(BadSelector('"=" is not a valid label selector operator')))

    assert event_messages(decision)[0] == ("FailedGetExternalMetric", '"=" is not a valid label selector operator')


def test_fewer_pods_than_spec_replicas():
    spec = make_spec(make_external_metric(value="5"))
    observation = make_observation(external_reading(10), replicas=10, pods=make_pods(5))

    assert decide_once(spec, observation, history=settled_history(10)).replicas == 10


def test_limit_step_names_max_replicas():
    decision = decide_once(make_spec(maximum=5), make_observation(external_reading(100)))

    (limited,) = [step for step in decision.steps if isinstance(step, LimitStep)]
    assert limited == LimitStep(20, 5, ScalingLimit.MAXIMUM, 6, fixed_rate=True)

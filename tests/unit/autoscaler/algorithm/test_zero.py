"""Scaling from and to zero, and the route of a decision."""

import pytest

from autoscaler.algorithm.zero import (
    ABOVE_MAXIMUM,
    BELOW_MINIMUM,
    EvaluateMetrics,
    MoveToBound,
    ScalingDisabled,
    choose_route,
    has_metric_without_pods,
    is_scale_to_zero,
    minimum_of,
    scaled_to_zero,
)
from autoscaler.types.status import Status
from tests.builders import (
    ALL_GATES,
    SCALE_TO_ZERO_GATE_OFF,
    ReconcileInput,
    condition_reasons,
    decide_once,
    external_reading,
    make_autoscaler,
    make_behavior,
    make_condition,
    make_container_metric,
    make_external_metric,
    make_object_metric,
    make_observation,
    make_pods_metric,
    make_resource_metric,
    make_spec,
    pod_reading,
    run_reconciles,
    scaled_to_zero_status,
    settled_history,
    unavailable_reading,
)

CPU, QUEUE = make_resource_metric(), make_external_metric()


@pytest.mark.parametrize(
    ("minimum", "metric", "scaled_by_autoscaler", "route"),
    [
        pytest.param(0, QUEUE, False, ScalingDisabled(), id="zero replicas set by a user disable scaling"),
        pytest.param(
            1,
            QUEUE,
            False,
            ScalingDisabled(),
            id="zero replicas set by a user disable scaling although minReplicas is 1",
        ),
        pytest.param(2, QUEUE, False, ScalingDisabled(), id="raised minReplicas does not reactivate a zero of a user"),
        pytest.param(0, QUEUE, True, EvaluateMetrics(), id="external metric is evaluated after scaling to zero"),
        pytest.param(0, CPU, True, ScalingDisabled(), id="only pod metrics after scaling to zero disable scaling"),
        pytest.param(2, QUEUE, True, EvaluateMetrics(2), id="minReplicas raised after scaling to zero is a minimum"),
        pytest.param(
            2,
            CPU,
            True,
            EvaluateMetrics(2),
            id="minReplicas raised after scaling to zero is a minimum for pod metrics too",
        ),
        pytest.param(None, QUEUE, True, EvaluateMetrics(1), id="minReplicas defaults to 1"),
    ],
)
def test_route_at_zero_replicas(minimum, metric, scaled_by_autoscaler, route):
    status = scaled_to_zero_status() if scaled_by_autoscaler else Status()

    assert choose_route(make_autoscaler(make_spec(metric, minimum=minimum), status), 0, ALL_GATES) == route


def test_route_after_scaling_to_zero_with_the_gate_off_is_scaling_disabled():
    autoscaler = make_autoscaler(make_spec(QUEUE, minimum=0), scaled_to_zero_status())

    assert choose_route(autoscaler, 0, SCALE_TO_ZERO_GATE_OFF) == ScalingDisabled()


@pytest.mark.parametrize(
    ("current", "route"),
    [
        pytest.param(1, MoveToBound(2, BELOW_MINIMUM), id="below minReplicas"),
        pytest.param(2, EvaluateMetrics(), id="at minReplicas"),
        pytest.param(9, EvaluateMetrics(), id="at maxReplicas"),
        pytest.param(10, MoveToBound(9, ABOVE_MAXIMUM), id="above maxReplicas"),
    ],
)
@pytest.mark.parametrize("status", [Status(), scaled_to_zero_status()])
def test_route_above_zero_replicas(current, route, status):
    assert choose_route(make_autoscaler(make_spec(minimum=2, maximum=9), status), current, ALL_GATES) == route


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param((), False, id="no condition"),
        pytest.param((make_condition("ScaledToZero", "False"),), False, id="condition False"),
        pytest.param((make_condition("ScaledToZero", "True"),), True, id="condition True"),
    ],
)
def test_scaled_to_zero_is_read_from_the_condition(conditions, expected):
    assert scaled_to_zero(Status(conditions=conditions)) is expected


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        pytest.param((CPU, make_pods_metric(), make_container_metric()), False, id="pod metrics"),
        pytest.param((CPU, QUEUE), True, id="with an external metric"),
        pytest.param((CPU, make_object_metric()), True, id="with an object metric"),
        pytest.param(None, False, id="no metrics"),
    ],
)
def test_metrics_with_a_value_without_pods(metrics, expected):
    assert has_metric_without_pods(make_spec(metrics=metrics)) is expected


@pytest.mark.parametrize(
    ("spec", "current", "replicas", "expected"),
    [
        pytest.param(make_spec(minimum=0), 3, 0, True, id="3 to 0"),
        pytest.param(make_spec(minimum=0), 0, 0, False, id="already at 0"),
        pytest.param(make_spec(minimum=0), 3, 1, False, id="3 to 1"),
        pytest.param(make_spec(minimum=1), 3, 0, False, id="minReplicas is 1"),
        pytest.param(make_spec(CPU, minimum=0), 3, 0, False, id="only pod metrics, which cannot scale up from 0"),
    ],
)
def test_rescales_that_scale_to_zero(spec, current, replicas, expected):
    assert is_scale_to_zero(spec, current, replicas) is expected


@pytest.mark.parametrize(("min_replicas", "minimum"), [(None, 1), (0, 0), (3, 3)])
def test_min_replicas_defaults_to_one(min_replicas, minimum):
    assert minimum_of(make_spec(minimum=min_replicas)) == minimum


def test_raised_min_replicas_after_scaling_to_zero_needs_an_available_metric():
    spec = make_spec(QUEUE, minimum=2)

    stuck = decide_once(spec, make_observation(unavailable_reading(), replicas=0), status=scaled_to_zero_status())

    assert (stuck.replicas, stuck.scale_to, stuck.failed) == (0, None, True)


@pytest.mark.parametrize(
    ("behavior", "limited"),
    [
        pytest.param(None, ("True", "TooFewReplicas"), id="without behavior the condition names the bound"),
        pytest.param(make_behavior(), ("False", "DesiredWithinRange"), id="with behavior the condition names no limit"),
    ],
)
def test_raised_min_replicas_after_scaling_to_zero_scales_up(behavior, limited):
    spec = make_spec(QUEUE, minimum=2, behavior=behavior)

    scaled_up = decide_once(
        spec,
        make_observation(external_reading(0), replicas=0),
        status=scaled_to_zero_status(),
        history=settled_history(0),
    )

    assert (scaled_up.scale_to, condition_reasons(scaled_up)["ScalingLimited"]) == (2, limited)


def test_scaled_to_zero_condition_is_kept_after_manual_scaling_and_cleared_by_a_rescale():
    spec = make_spec(QUEUE, minimum=0)
    inputs = [
        ReconcileInput(0, (external_reading(15),), replicas=3),
        ReconcileInput(15, (external_reading(15),), replicas=0),
    ]

    by_hand, scaled_up = run_reconciles(spec, inputs, replicas=0, status=scaled_to_zero_status())

    assert (by_hand.scale_to, condition_reasons(by_hand)["ScaledToZero"]) == (None, ("True", "ScaledToZero"))
    assert (scaled_up.scale_to, condition_reasons(scaled_up)["ScaledToZero"]) == (3, ("False", "NotScaledToZero"))


def test_switching_the_gate_off_and_on_leaves_scaling_disabled():
    spec = make_spec(QUEUE, minimum=0)
    inputs = [
        ReconcileInput(0, (external_reading(15),), gates=SCALE_TO_ZERO_GATE_OFF),
        ReconcileInput(15, (external_reading(15),)),
    ]

    off, _ = run_reconciles(spec, inputs, replicas=0, status=scaled_to_zero_status())
    on = decide_once(spec, make_observation(external_reading(15), replicas=0), status=off.status)

    assert off.status.condition("ScaledToZero") is None
    assert (on.scale_to, condition_reasons(on)["ScalingActive"]) == (None, ("False", "ScalingDisabled"))


def test_pod_metrics_cannot_scale_up_from_zero():
    spec = make_spec(CPU, minimum=1)

    stuck = decide_once(spec, make_observation(pod_reading(100), replicas=0), status=scaled_to_zero_status())

    assert (stuck.scale_to, stuck.failed) == (None, True)

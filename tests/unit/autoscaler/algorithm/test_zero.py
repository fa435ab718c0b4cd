"""What zero means, and where a pass goes from the target's size."""

import pytest

from autoscaler.algorithm.zero import (
    ABOVE,
    BELOW,
    Ask,
    Off,
    ToBound,
    arrives_at_zero,
    choose_route,
    minimum_of,
    sees_the_world_without_pods,
)
from tests.builders import (
    NO_ZERO,
    Step,
    at_zero_by_us,
    decide_once,
    long_at,
    make_behavior,
    make_container_metric,
    make_external_metric,
    make_object_metric,
    make_observation,
    make_pods_metric,
    make_resource_metric,
    make_spec,
    pods_say,
    queue_of,
    reasons_of,
    run_passes,
    unreadable,
)

CPU, QUEUE = make_resource_metric(), make_external_metric()


@pytest.mark.parametrize(
    ("minimum", "metric", "zeroed_by_us", "route"),
    [
        pytest.param(0, QUEUE, False, Off(), id="someone else's zero is left alone"),
        pytest.param(1, QUEUE, False, Off(), id="someone else's zero is left alone below the minimum too"),
        pytest.param(0, QUEUE, True, Ask(), id="our zero with a metric of the outside asks"),
        pytest.param(0, CPU, True, Off(), id="our zero with metrics of pods only has nobody to ask"),
        pytest.param(2, QUEUE, True, Ask(floor=2), id="our zero with a raised minimum asks and has a floor"),
        pytest.param(2, CPU, True, Ask(floor=2), id="so it does with metrics of pods"),
        pytest.param(None, QUEUE, True, Ask(floor=1), id="no minimum means one"),
    ],
)
def test_at_zero(minimum, metric, zeroed_by_us, route):
    assert choose_route(make_spec(metric, minimum=minimum), 0, zeroed_by_us=zeroed_by_us) == route


@pytest.mark.parametrize(
    ("current", "route"),
    [
        pytest.param(1, ToBound(2, BELOW), id="below the minimum"),
        pytest.param(2, Ask(), id="at the minimum"),
        pytest.param(9, Ask(), id="at the maximum"),
        pytest.param(10, ToBound(9, ABOVE), id="above the maximum"),
    ],
)
@pytest.mark.parametrize("zeroed_by_us", [True, False])
def test_above_zero(current, route, zeroed_by_us):
    assert choose_route(make_spec(minimum=2, maximum=9), current, zeroed_by_us=zeroed_by_us) == route


@pytest.mark.parametrize(
    ("metrics", "sees"),
    [
        pytest.param((CPU, make_pods_metric(), make_container_metric()), False, id="metrics of pods"),
        pytest.param((CPU, QUEUE), True, id="an external metric among them"),
        pytest.param((CPU, make_object_metric()), True, id="an object among them"),
        pytest.param(None, False, id="no metrics"),
    ],
)
def test_who_sees_the_world_without_pods(metrics, sees):
    assert sees_the_world_without_pods(make_spec(metrics=metrics)) is sees


@pytest.mark.parametrize(
    ("spec", "current", "replicas", "arrives"),
    [
        pytest.param(make_spec(minimum=0), 3, 0, True, id="from three"),
        pytest.param(make_spec(minimum=0), 0, 0, False, id="it was there already"),
        pytest.param(make_spec(minimum=0), 3, 1, False, id="it stops before"),
        pytest.param(make_spec(minimum=1), 3, 0, False, id="it may not"),
        pytest.param(make_spec(CPU, minimum=0), 3, 0, False, id="it could not wake from there"),
    ],
)
def test_arriving_at_zero(spec, current, replicas, arrives):
    assert arrives_at_zero(spec, current, replicas) is arrives


@pytest.mark.parametrize(("written", "minimum"), [(None, 1), (0, 0), (3, 3)])
def test_the_minimum(written, minimum):
    assert minimum_of(make_spec(minimum=written)) == minimum


def test_a_minimum_raised_at_our_zero_needs_metrics_that_answer():
    spec = make_spec(QUEUE, minimum=2)

    stuck = decide_once(spec, make_observation(unreadable(), replicas=0), status=at_zero_by_us())

    assert (stuck.replicas, stuck.scale_to, stuck.failed) == (0, None, True)


@pytest.mark.parametrize(
    ("behavior", "limited"),
    [
        pytest.param(None, ("True", "TooFewReplicas"), id="without behavior the bound lifts it and is named"),
        pytest.param(make_behavior(), ("False", "DesiredWithinRange"), id="with behavior the floor lifts it unnamed"),
    ],
)
def test_a_minimum_raised_at_our_zero_lifts_it(behavior, limited):
    spec = make_spec(QUEUE, minimum=2, behavior=behavior)

    woken = decide_once(spec, make_observation(queue_of(0), replicas=0), status=at_zero_by_us(), past=long_at(0))

    assert (woken.scale_to, reasons_of(woken)["ScalingLimited"]) == (2, limited)


def test_a_rescale_clears_the_mark_and_a_stale_mark_wakes():
    spec = make_spec(QUEUE, minimum=0)
    steps = [Step(0, (queue_of(15),), replicas=3), Step(15, (queue_of(15),), replicas=0)]

    by_hand, woken = run_passes(spec, steps, replicas=0, status=at_zero_by_us())

    assert (by_hand.scale_to, reasons_of(by_hand)["ScaledToZero"]) == (None, ("True", "ScaledToZero"))
    assert (woken.scale_to, reasons_of(woken)["ScaledToZero"]) == (3, ("False", "NotScaledToZero"))


def test_the_gate_off_and_on_again_does_not_wake_it():
    spec = make_spec(QUEUE, minimum=0)
    steps = [Step(0, (queue_of(15),), gates=NO_ZERO), Step(15, (queue_of(15),))]

    off, _ = run_passes(spec, steps, replicas=0, status=at_zero_by_us())
    on = decide_once(spec, make_observation(queue_of(15), replicas=0), status=off.status)

    assert off.status.condition("ScaledToZero") is None
    assert (on.scale_to, reasons_of(on)["ScalingActive"]) == (None, ("False", "ScalingDisabled"))


def test_metrics_of_pods_cannot_wake_it():
    spec = make_spec(CPU, minimum=1)

    stuck = decide_once(spec, make_observation(pods_say(100), replicas=0), status=at_zero_by_us())

    assert (stuck.scale_to, stuck.failed) == (None, True)

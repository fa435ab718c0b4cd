"""Laws of what one metric asks for."""

from hypothesis import assume, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from autoscaler.algorithm.calculate import AverageYardstick, UtilizationYardstick, from_pods
from autoscaler.algorithm.propose import propose
from autoscaler.types.metric_result import Calculation, PodGroups, Rule, Tolerance
from tests.builders import (
    TENTH,
    make_external_metric,
    make_pods,
    make_pods_metric,
    make_resource_metric,
    make_sample,
    make_samples,
    make_scene,
    pods_say,
    queue_of,
)

quick = hypothesis(max_examples=60, deadline=None)

loads = st.lists(st.integers(0, 5000), min_size=1, max_size=12)
tolerances = st.builds(Tolerance, st.sampled_from([0.0, 0.1, 0.4]), st.sampled_from([0.0, 0.1, 0.4]))


@st.composite
def cases(draw):
    """Some pods with numbers, some missing, some unready, and what they are held against."""
    milli = draw(loads)
    missing = tuple(f"m{index}" for index in range(draw(st.integers(0, 4))))
    unready = tuple(f"u{index}" for index in range(draw(st.integers(0, 4))))
    requests = dict.fromkeys((*make_samples(*milli), *missing, *unready), 1000)
    yardstick = draw(
        st.builds(AverageYardstick, st.integers(1, 3000))
        | st.builds(UtilizationYardstick, st.integers(1, 300), st.just(requests))
    )
    return make_samples(*milli), PodGroups(len(milli), unready, missing), yardstick


@quick
@given(cases(), st.integers(0, 20), tolerances)
def test_missing_and_unready_pods_may_damp_a_move_but_never_reverse_it(case, current, tolerance):
    samples, groups, yardstick = case
    result = from_pods(samples, groups, current, tolerance, yardstick)
    assert isinstance(result, Calculation)
    assume(result.refined_ratio is not None)
    undamped = result.ratio * result.multiplier

    if result.ratio > 1:
        assert current <= result.replicas <= max(current, undamped + 1)
    elif result.ratio < 1:
        assert min(current, undamped) <= result.replicas <= current
    else:
        assert result.replicas == current


@quick
@given(loads, st.integers(1, 3000), tolerances)
def test_with_every_pod_ready_and_measured_a_ratio_within_tolerance_moves_nothing(milli, target, tolerance):
    current = len(milli)
    result = from_pods(make_samples(*milli), PodGroups(current), current, tolerance, AverageYardstick(target))

    if tolerance.covers(result.ratio):
        assert (result.replicas, result.rule) == (current, Rule.WITHIN_TOLERANCE)
    elif result.ratio > 1:
        assert result.replicas > current * result.ratio - 1
        assert result.replicas >= current
    else:
        assert result.replicas <= current


@quick
@given(loads, st.data())
def test_with_every_pod_ready_and_measured_more_load_never_means_fewer_replicas(milli, data):
    more = [number + data.draw(st.integers(0, 2000)) for number in milli]
    metric = data.draw(st.sampled_from([make_resource_metric(utilization=60), make_pods_metric(average="700m")]))
    scene = make_scene(len(milli))

    assert propose(metric, pods_say(*milli), scene).replicas <= propose(metric, pods_say(*more), scene).replicas


@quick
@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 40),
    st.sampled_from([make_external_metric(value="5"), make_external_metric(average="5")]),
)
def test_with_every_pod_ready_a_longer_queue_never_means_fewer_replicas(milli, more, size, metric):
    less, greater = (
        propose(metric, queue_of(number / 1000), make_scene(size)).replicas for number in (milli, milli + more)
    )

    assert less <= greater


def test_with_fewer_pods_than_asked_for_more_load_may_mean_fewer_replicas():
    """Upstream multiplies by the pods there are: at its target it keeps the ten asked for, above it goes to six."""
    scene = make_scene(10, pods=make_pods(5))

    at_target, above = (propose(make_resource_metric(), pods_say(*[milli] * 5), scene).replicas for milli in (500, 600))

    assert (at_target, above) == (10, 6)


def test_at_the_edge_of_the_tolerance_an_average_of_a_surging_rollout_may_jump_down():
    """Within tolerance it answers with the size it has, not with the size asked for: ten asked for, six there."""
    scene = make_scene(10, 6)

    assert propose(make_external_metric(), queue_of(30), scene).replicas == 6


def test_a_missing_pod_may_turn_a_way_up_into_none():
    groups = PodGroups(3, missing=("gone",))
    samples = {f"p{index}": make_sample(600) for index in range(3)}
    requests = dict.fromkeys((*samples, "gone"), 1000)

    assert from_pods(samples, groups, 4, TENTH, UtilizationYardstick(50, requests)).replicas == 4

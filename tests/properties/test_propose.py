"""Properties of the proposal of one metric."""

from hypothesis import assume, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from autoscaler.algorithm.calculate import AverageValueTarget, UtilizationTarget, from_pods
from autoscaler.types.metric_result import Calculation, CalculationRule, PodGroups, Tolerance
from tests.builders import (
    TOLERANCE,
    external_reading,
    make_external_metric,
    make_metric_context,
    make_pods,
    make_pods_metric,
    make_resource_metric,
    make_sample,
    make_samples,
    pod_reading,
    proposal_of,
)

quick = hypothesis(max_examples=60, deadline=None)

loads = st.lists(st.integers(0, 5000), min_size=1, max_size=12)
tolerances = st.builds(Tolerance, st.sampled_from([0.0, 0.1, 0.4]), st.sampled_from([0.0, 0.1, 0.4]))


@st.composite
def cases(draw):
    """Samples of some pods, missing and unready pods, and a target."""
    milli = draw(loads)
    missing = tuple(f"m{index}" for index in range(draw(st.integers(0, 4))))
    unready = tuple(f"u{index}" for index in range(draw(st.integers(0, 4))))
    requests = dict.fromkeys((*make_samples(*milli), *missing, *unready), 1000)
    target = draw(
        st.builds(AverageValueTarget, st.integers(1, 3000))
        | st.builds(UtilizationTarget, st.integers(1, 300), st.just(requests))
    )
    return make_samples(*milli), PodGroups(len(milli), unready, missing), target


@quick
@given(cases(), st.integers(0, 20), tolerances)
def test_missing_and_unready_pods_dampen_a_change_but_never_reverse_it(case, current, tolerance):
    samples, groups, target = case
    result = from_pods(samples, groups, current, tolerance, target)
    assert isinstance(result, Calculation)
    assume(result.refined_ratio is not None)
    assert result.multiplier is not None
    undamped = result.ratio * result.multiplier

    if result.ratio > 1:
        assert current <= result.replicas <= max(current, undamped + 1)
    elif result.ratio < 1:
        assert min(current, undamped) <= result.replicas <= current
    else:
        assert result.replicas == current


@quick
@given(loads, st.integers(1, 3000), tolerances)
def test_ratio_within_tolerance_proposes_no_change(milli, target, tolerance):
    current = len(milli)
    result = from_pods(make_samples(*milli), PodGroups(current), current, tolerance, AverageValueTarget(target))

    assert isinstance(result, Calculation)
    if tolerance.covers(result.ratio):
        assert (result.replicas, result.rule) == (current, CalculationRule.WITHIN_TOLERANCE)
    elif result.ratio > 1:
        assert result.replicas > current * result.ratio - 1
        assert result.replicas >= current
    else:
        assert result.replicas <= current


@quick
@given(loads, st.data())
def test_more_load_never_proposes_fewer_replicas_if_all_pods_are_ready(milli, data):
    more = [number + data.draw(st.integers(0, 2000)) for number in milli]
    metric = data.draw(st.sampled_from([make_resource_metric(utilization=60), make_pods_metric(average="700m")]))
    context = make_metric_context(len(milli))

    assert (
        proposal_of(metric, pod_reading(*milli), context).replicas
        <= proposal_of(metric, pod_reading(*more), context).replicas
    )


@quick
@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 40),
    st.sampled_from([make_external_metric(value="5"), make_external_metric(average="5")]),
)
def test_longer_queue_never_proposes_fewer_replicas_if_all_pods_are_ready(milli, more, size, metric):
    less, greater = (
        proposal_of(metric, external_reading(number / 1000), make_metric_context(size)).replicas
        for number in (milli, milli + more)
    )

    assert less <= greater


def test_more_load_may_propose_fewer_replicas_if_pods_are_fewer_than_spec_replicas():
    """Upstream multiplies by ready pods: with 5 of 10 it proposes 10 at the target, and 6 above it."""
    context = make_metric_context(10, pods=make_pods(5))

    at_target, above = (
        proposal_of(make_resource_metric(), pod_reading(*[milli] * 5), context).replicas for milli in (500, 600)
    )

    assert (at_target, above) == (10, 6)


def test_average_target_within_tolerance_proposes_status_replicas():
    """Upstream proposes the status replicas of 6, and not the spec replicas of 10."""
    context = make_metric_context(10, 6)

    assert proposal_of(make_external_metric(), external_reading(30), context).replicas == 6


def test_missing_pod_may_prevent_a_scale_up():
    groups = PodGroups(3, missing=("gone",))
    samples = {f"p{index}": make_sample(600) for index in range(3)}
    requests = dict.fromkeys((*samples, "gone"), 1000)

    result = from_pods(samples, groups, 4, TOLERANCE, UtilizationTarget(50, requests))

    assert isinstance(result, Calculation)
    assert result.replicas == 4

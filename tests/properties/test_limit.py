"""Properties of scaling policies: no period contains more change than its policy allows."""

from datetime import timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from autoscaler.algorithm.limit import Direction, allowed_rate, limit, record_rescale
from autoscaler.types.history import History
from autoscaler.types.spec import Policy
from tests.builders import NOW, later, make_behavior, make_rules, make_scale_events
from tests.properties.strategies import SIZES, behaviors, histories

quick = hypothesis(max_examples=60, deadline=None)
BOUNDS = (1, 40)


def apply_limits(requests, start, behavior):
    """Apply the limits to requests of a pause and a replica count; return times and resulting replicas."""
    size, now, history = start, NOW, History()
    steps = [(NOW - timedelta(days=1), start)]
    for pause, replicas in requests:
        now += timedelta(seconds=pause)
        after = limit(replicas, size, BOUNDS, behavior, history, now).replicas
        if after != size:
            history = record_rescale(history, behavior, size, after, now)
        size = after
        steps.append((now, size))
    return steps


requests = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 40)), min_size=1, max_size=25)


@quick
@given(requests, st.integers(1, 40), st.integers(1, 5), st.integers(1, 5), st.integers(10, 120))
def test_change_within_a_period_never_exceeds_its_policy(requests, start, up, down, period):
    behavior = make_behavior(up=make_rules(Policy("Pods", up, period)), down=make_rules(Policy("Pods", down, period)))
    steps = apply_limits(requests, start, behavior)

    for (_, before), (at, after) in pairwise(steps):
        began = at - timedelta(seconds=period)
        base = next(size for moment, size in reversed(steps) if moment <= began)
        if after > before:
            assert after - base <= up
        elif after < before:
            assert base - after <= down


def test_scale_down_before_the_period_allows_a_larger_scale_up_within_it():
    """The scale up back to the former replicas exceeds the policy once the scale down has left the period."""
    behavior = make_behavior(up=make_rules(Policy("Pods", 2, 60)), down=make_rules(Policy("Pods", 2, 60)))

    sizes = [size for _, size in apply_limits([(10, 3), (10, 9), (51, 9)], 5, behavior)]

    assert sizes == [5, 3, 7, 7]


@quick
@given(SIZES, st.integers(1, 40), behaviors, histories)
def test_result_is_between_current_and_stabilized_replicas(stabilized, current, behavior, history):
    replicas = limit(stabilized, current, BOUNDS, behavior, history, NOW).replicas

    assert min(stabilized, current) <= replicas <= max(stabilized, current) or replicas in BOUNDS


@quick
@given(SIZES, st.integers(1, 40), st.none() | behaviors, histories)
def test_bound_of_the_direction_is_respected(stabilized, current, behavior, history):
    replicas = limit(stabilized, current, BOUNDS, behavior, history, NOW).replicas

    if stabilized > current:
        assert replicas <= BOUNDS[1]
    if stabilized < current:
        assert replicas >= BOUNDS[0]


@quick
@given(st.integers(1, 40), behaviors, histories)
def test_select_policy_min_never_allows_more_than_max(current, behavior, history):
    for direction, rules in ((Direction.UP, behavior.scale_up), (Direction.DOWN, behavior.scale_down)):
        largest, smallest = (
            direction
            * allowed_rate(direction, current, make_rules(*rules.policies, select=select), history, NOW).allowed
            for select in ("Max", "Min")
        )
        assert smallest <= largest


def test_recorded_scale_up_may_be_overwritten_before_a_longer_scale_down_period_ends():
    """Upstream keeps a rescale only as long as the policies of its own direction need it."""
    behavior = make_behavior(up=make_rules(Policy("Pods", 9, 10)), down=make_rules(Policy("Pods", 1, 600)))
    history = History(scale_ups=make_scale_events((4, 20)))

    assert limit(1, 9, BOUNDS, behavior, history, NOW).rate == 4
    overwritten = record_rescale(history, behavior, 9, 10, NOW)

    assert limit(1, 10, BOUNDS, behavior, overwritten, later(1)).rate == 8

"""Laws of the rate: over many passes, no period sees more change than its policy allows."""

from datetime import timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from autoscaler.algorithm.limit import Direction, limit, rate, remember_rescale
from autoscaler.types.history import History
from autoscaler.types.spec import Policy
from tests.builders import NOW, later, make_behavior, make_rules, rescaled
from tests.properties.strategies import SIZES, behaviors, histories

quick = hypothesis(max_examples=60, deadline=None)
BOUNDS = (1, 40)


def walk(wishes, start, behavior):
    """Follow wishes, made of a pause and a size, and give the sizes with their times."""
    size, now, past = start, NOW, History()
    steps = [(NOW - timedelta(days=1), start)]
    for pause, wanted in wishes:
        now += timedelta(seconds=pause)
        after = limit(wanted, size, BOUNDS, behavior, past, now).replicas
        if after != size:
            past = remember_rescale(past, behavior, size, after, now)
        size = after
        steps.append((now, size))
    return steps


wishes = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 40)), min_size=1, max_size=25)


@quick
@given(wishes, st.integers(1, 40), st.integers(1, 5), st.integers(1, 5), st.integers(10, 120))
def test_a_step_never_takes_a_period_beyond_what_its_policy_allows(wishes, start, up, down, period):
    behavior = make_behavior(up=make_rules(Policy("Pods", up, period)), down=make_rules(Policy("Pods", down, period)))
    steps = walk(wishes, start, behavior)

    for (_, before), (at, after) in pairwise(steps):
        began = at - timedelta(seconds=period)
        base = next(size for moment, size in reversed(steps) if moment <= began)
        if after > before:
            assert after - base <= up
        elif after < before:
            assert base - after <= down


def test_but_a_period_may_begin_after_a_way_down_and_then_hold_more_than_one_policys_worth():
    """Coming back counts as change once the way down is forgotten: no more is allowed, but nothing is undone."""
    behavior = make_behavior(up=make_rules(Policy("Pods", 2, 60)), down=make_rules(Policy("Pods", 2, 60)))

    sizes = [size for _, size in walk([(10, 3), (10, 9), (51, 9)], 5, behavior)]

    assert sizes == [5, 3, 7, 7]


@quick
@given(SIZES, st.integers(1, 40), behaviors, histories)
def test_a_step_goes_towards_the_wish_and_never_past_it(steady, current, behavior, past):
    replicas = limit(steady, current, BOUNDS, behavior, past, NOW).replicas

    assert min(steady, current) <= replicas <= max(steady, current) or replicas in BOUNDS


@quick
@given(SIZES, st.integers(1, 40), st.none() | behaviors, histories)
def test_the_bound_of_the_direction_travelled_holds(steady, current, behavior, past):
    replicas = limit(steady, current, BOUNDS, behavior, past, NOW).replicas

    if steady > current:
        assert replicas <= BOUNDS[1]
    if steady < current:
        assert replicas >= BOUNDS[0]


@quick
@given(st.integers(1, 40), behaviors, histories)
def test_the_least_is_never_more_than_the_most(current, behavior, past):
    for direction, rules in ((Direction.UP, behavior.scale_up), (Direction.DOWN, behavior.scale_down)):
        most, least = (
            direction * rate(direction, current, make_rules(*rules.policies, select=select), past, NOW).allowed
            for select in ("Max", "Min")
        )
        assert least <= most


def test_a_way_up_may_be_forgotten_before_a_longer_way_down_has_counted_it():
    """Upstream keeps a rescale as long as its own direction needs it, so the other may miss it."""
    behavior = make_behavior(up=make_rules(Policy("Pods", 9, 10)), down=make_rules(Policy("Pods", 1, 600)))
    past = History(scale_ups=rescaled((4, 20)))

    assert limit(1, 9, BOUNDS, behavior, past, NOW).rate == 4
    forgetful = remember_rescale(past, behavior, 9, 10, NOW)

    assert limit(1, 10, BOUNDS, behavior, forgetful, later(1)).rate == 8

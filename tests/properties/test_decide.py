"""Laws of ``decide``, each checked against upstream's code before it was called a law."""

from copy import deepcopy
from datetime import timedelta

import msgspec
from hypothesis import assume, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from msgspec.structs import replace

from autoscaler.algorithm.stabilize import windows
from autoscaler.algorithm.zero import minimum_of
from autoscaler.types.history import History
from autoscaler.types.observation import ObjectReading, TargetUnreadable
from autoscaler.types.steps import Combined, Held, Step, SwitchedOff
from tests.builders import (
    at_zero_by_us,
    decide_once,
    make_external_metric,
    make_object_metric,
    make_observation,
    make_spec,
    queue_of,
    recommended,
    unreadable,
)
from tests.properties.strategies import Dependencies, shifted, worlds, worlds_with_target

quick = hypothesis(max_examples=50, deadline=None)


def numbers(decision):
    """Give every number a decision leads to, without the words."""
    return (decision.replicas, decision.scale_to, decision.history, decision.failed, decision.bound)


@quick
@given(worlds_with_target)
def test_a_size_is_within_the_bounds_unless_scaling_is_off_or_nothing_is_known(world):
    decision = world.decide()
    spec = world.autoscaler.spec

    if decision.failed or any(isinstance(step, SwitchedOff) for step in decision.working):
        assert decision.replicas == world.current
    else:
        assert minimum_of(spec) <= decision.replicas <= spec.max_replicas


@quick
@given(worlds)
def test_the_same_world_gives_the_same_decision_and_is_left_as_it_was(world):
    before = deepcopy(world)

    assert world.decide() == world.decide()
    assert world == before


@quick
@given(worlds, st.integers(-(10**8), 10**8).map(lambda seconds: timedelta(seconds=seconds)))
def test_moving_every_time_changes_nothing_but_the_times(world, delta):
    assert shifted(world, delta).decide() == shifted(world.decide(), delta)


@quick
@given(worlds, st.randoms(use_true_random=False))
def test_the_order_of_pods_changes_no_number(world, random):
    pods = list(world.seen.pods)
    random.shuffle(pods)
    other = Dependencies(**vars(world) | {"seen": replace(world.seen, pods=tuple(pods))})

    one, two = world.decide(), other.decide()

    assert numbers(one) == numbers(two)
    assert one.status.current_metrics == two.status.current_metrics


@quick
@given(worlds, st.data())
def test_the_order_of_metrics_changes_no_number(world, data):
    order = data.draw(st.permutations(range(len(world.seen.readings))))

    one, two = world.decide(), world.ordered(order).decide()

    assert (one.replicas, one.scale_to, one.history, one.failed) == (
        two.replicas,
        two.scale_to,
        two.history,
        two.failed,
    )


def test_the_order_of_metrics_may_matter_where_a_proposal_is_below_zero():
    """Upstream forgets a leading zero, also for something smaller, and then takes it for a way down from zero."""
    silent, queue, temperature = make_external_metric("silent"), make_external_metric("queue"), make_object_metric()
    freezing = ObjectReading(-30_000)
    worlds = (
        (make_spec(silent, queue, temperature, minimum=0), (unreadable(), queue_of(0), freezing)),
        (make_spec(silent, temperature, queue, minimum=0), (unreadable(), freezing, queue_of(0))),
    )

    failed = [
        decide_once(spec, make_observation(*readings, replicas=0), status=at_zero_by_us()).failed
        for spec, readings in worlds
    ]

    assert failed == [True, False]


@quick
@given(worlds_with_target)
def test_half_blind_it_never_scales_down(world):
    silent = replace(world.autoscaler.spec, metrics=(make_external_metric("silent"), *world.autoscaler.spec.metrics))
    decision = Dependencies(
        **vars(world)
        | {
            "autoscaler": replace(world.autoscaler, spec=silent),
            "seen": replace(world.seen, readings=(unreadable(), *world.seen.readings)),
        }
    ).decide()

    if any(isinstance(step, Combined) for step in decision.working):
        assert decision.replicas >= world.current


def pruned(world):
    """Forget what no window and no policy can still see, but not that there was a past."""
    past, behavior = world.past, world.autoscaler.spec.behavior
    window, period = world.settings.downscale_stabilization, timedelta(0)
    if behavior is not None:
        window = max(windows(behavior, world.settings))
        every = (*(behavior.scale_up.policies or ()), *(behavior.scale_down.policies or ()))
        period = timedelta(seconds=max((policy.period_seconds for policy in every), default=0))
    fresh = tuple(one for one in past.recommendations if one.at >= world.now - window)
    return History(
        fresh or past.recommendations[-1:],
        tuple(one for one in past.scale_ups if one.at > world.now - period),
        tuple(one for one in past.scale_downs if one.at > world.now - period),
    )


@quick
@given(worlds)
def test_forgetting_what_is_outdated_changes_nothing(world):
    one, two = world.decide(), Dependencies(**vars(world) | {"past": pruned(world)}).decide()

    assert replace(one, history=History()) == replace(two, history=History())


def test_forgetting_everything_is_a_restart_and_holds_a_scale_down():
    """Upstream takes the size it finds for its first recommendation, so an empty past is not an outdated one."""
    seen = make_observation(queue_of(5))

    assert decide_once(seen=seen, past=History(recommended((3, 9999)))).replicas == 1
    assert decide_once(seen=seen, past=History()).replicas == 3


@quick
@given(worlds)
def test_the_working_can_be_read_back_from_json(world):
    working = world.decide().working

    assert msgspec.json.decode(msgspec.json.encode(working), type=tuple[Step, ...]) == working


@quick
@given(worlds)
def test_what_is_written_is_what_was_decided_and_only_if_it_is_new(world):
    decision = world.decide()
    held = any(isinstance(step, Held) for step in decision.working)

    if decision.scale_to is not None:
        assert decision.scale_to == decision.replicas != world.current
        assert not held
    elif not isinstance(world.seen.target, TargetUnreadable):
        assert held or decision.replicas == world.current


@quick
@given(worlds)
def test_deciding_again_at_once_with_the_same_facts_changes_no_condition(world):
    """Level, not edge: what a pass says does not depend on its having said so before, events of fallbacks apart."""
    assume(world.gates.HPAExternalMetricFallback)
    first = world.decide()
    assume(first.scale_to is None)
    again = Dependencies(
        **vars(world) | {"autoscaler": replace(world.autoscaler, status=first.status), "past": first.history}
    ).decide()

    assert (again.replicas, again.status, again.status_changed) == (first.replicas, first.status, False)

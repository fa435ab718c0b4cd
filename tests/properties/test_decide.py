"""Properties of ``decide``. Each also holds for upstream's code."""

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
from autoscaler.types.observation import ObjectReading, UnavailableTarget
from autoscaler.types.steps import NotAppliedStep, RecommendationStep, ScalingDisabledStep, Step
from tests.builders import (
    decide_once,
    external_reading,
    make_external_metric,
    make_object_metric,
    make_observation,
    make_recommendations,
    make_spec,
    scaled_to_zero_status,
    unavailable_reading,
)
from tests.properties.strategies import DecisionInputs, decision_inputs, inputs_with_target, shifted

quick = hypothesis(max_examples=50, deadline=None)


def numbers(decision):
    """Return the numeric results of a decision, without texts."""
    return (decision.replicas, decision.scale_to, decision.history, decision.failed, decision.limiting_factor)


@quick
@given(inputs_with_target)
def test_replicas_are_within_the_bounds_unless_scaling_is_disabled_or_failed(inputs):
    decision = inputs.decide()
    spec = inputs.autoscaler.spec

    if decision.failed or any(isinstance(step, ScalingDisabledStep) for step in decision.steps):
        assert decision.replicas == inputs.current
    else:
        assert minimum_of(spec) <= decision.replicas <= spec.max_replicas


@quick
@given(decision_inputs)
def test_decide_is_deterministic_and_does_not_modify_its_inputs(inputs):
    before = deepcopy(inputs)

    assert inputs.decide() == inputs.decide()
    assert inputs == before


@quick
@given(decision_inputs, st.integers(-(10**8), 10**8).map(lambda seconds: timedelta(seconds=seconds)))
def test_shifting_all_times_shifts_the_decision(inputs, delta):
    assert shifted(inputs, delta).decide() == shifted(inputs.decide(), delta)


@quick
@given(decision_inputs, st.randoms(use_true_random=False))
def test_order_of_pods_does_not_matter(inputs, random):
    pods = list(inputs.observation.pods)
    random.shuffle(pods)
    other = DecisionInputs(**vars(inputs) | {"observation": replace(inputs.observation, pods=tuple(pods))})

    first, second = inputs.decide(), other.decide()

    assert numbers(first) == numbers(second)
    assert first.status.current_metrics == second.status.current_metrics


@quick
@given(decision_inputs, st.data())
def test_order_of_metrics_does_not_change_the_replicas(inputs, data):
    order = data.draw(st.permutations(range(len(inputs.observation.readings))))

    first, second = inputs.decide(), inputs.ordered(order).decide()

    assert (first.replicas, first.scale_to, first.history, first.failed) == (
        second.replicas,
        second.scale_to,
        second.history,
        second.failed,
    )


def test_order_of_metrics_matters_for_a_negative_proposal():
    """Upstream replaces a proposal of 0 by any later one, even a negative one, and then blocks the scale down."""
    unavailable, queue, temperature = (
        make_external_metric("unavailable"),
        make_external_metric("queue"),
        make_object_metric(),
    )
    negative = ObjectReading(-30_000)
    cases = (
        (make_spec(unavailable, queue, temperature, minimum=0), (unavailable_reading(), external_reading(0), negative)),
        (make_spec(unavailable, temperature, queue, minimum=0), (unavailable_reading(), negative, external_reading(0))),
    )

    failed = [
        decide_once(spec, make_observation(*readings, replicas=0), status=scaled_to_zero_status()).failed
        for spec, readings in cases
    ]

    assert failed == [True, False]


@quick
@given(inputs_with_target)
def test_unavailable_metric_blocks_scaling_down(inputs):
    spec = replace(
        inputs.autoscaler.spec, metrics=(make_external_metric("unavailable"), *inputs.autoscaler.spec.metrics)
    )
    decision = DecisionInputs(
        **vars(inputs)
        | {
            "autoscaler": replace(inputs.autoscaler, spec=spec),
            "observation": replace(inputs.observation, readings=(unavailable_reading(), *inputs.observation.readings)),
        }
    ).decide()

    if any(isinstance(step, RecommendationStep) for step in decision.steps):
        assert decision.replicas >= inputs.current


def pruned(inputs):
    """Return the history without entries older than all windows and periods, but not empty."""
    history, behavior = inputs.history, inputs.autoscaler.spec.behavior
    window, period = inputs.settings.downscale_stabilization, timedelta(0)
    if behavior is not None:
        window = max(windows(behavior, inputs.settings))
        every = (*(behavior.scale_up.policies or ()), *(behavior.scale_down.policies or ()))
        period = timedelta(seconds=max((policy.period_seconds for policy in every), default=0))
    fresh = tuple(entry for entry in history.recommendations if entry.at >= inputs.now - window)
    return History(
        fresh or history.recommendations[-1:],
        tuple(entry for entry in history.scale_ups if entry.at > inputs.now - period),
        tuple(entry for entry in history.scale_downs if entry.at > inputs.now - period),
    )


@quick
@given(decision_inputs)
def test_outdated_history_does_not_change_the_decision(inputs):
    first, second = inputs.decide(), DecisionInputs(**vars(inputs) | {"history": pruned(inputs)}).decide()

    assert replace(first, history=History()) == replace(second, history=History())


def test_empty_history_delays_a_scale_down():
    """Upstream seeds an empty history with the current replicas, so it differs from an outdated history."""
    observation = make_observation(external_reading(5))

    assert decide_once(observation=observation, history=History(make_recommendations((3, 9999)))).replicas == 1
    assert decide_once(observation=observation, history=History()).replicas == 3


@quick
@given(decision_inputs)
def test_steps_can_be_decoded_from_json(inputs):
    steps = inputs.decide().steps

    assert msgspec.json.decode(msgspec.json.encode(steps), type=tuple[Step, ...]) == steps


@quick
@given(decision_inputs)
def test_scale_is_written_only_if_it_changes_and_is_applied(inputs):
    decision = inputs.decide()
    not_applied = any(isinstance(step, NotAppliedStep) for step in decision.steps)

    if decision.scale_to is not None:
        assert decision.scale_to == decision.replicas != inputs.current
        assert not not_applied
    elif not isinstance(inputs.observation.target, UnavailableTarget):
        assert not_applied or decision.replicas == inputs.current


@quick
@given(decision_inputs)
def test_repeated_decision_with_the_same_inputs_changes_no_condition(inputs):
    assume(inputs.gates.HPAExternalMetricFallback)
    first = inputs.decide()
    assume(first.scale_to is None)
    again = DecisionInputs(
        **vars(inputs) | {"autoscaler": replace(inputs.autoscaler, status=first.status), "history": first.history}
    ).decide()

    assert (again.replicas, again.status, again.status_changed) == (first.replicas, first.status, False)

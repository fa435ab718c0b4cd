"""Laws of the fallback, over passes in which anything else may happen."""

from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from msgspec.structs import replace

from autoscaler.types.observation import TargetUnreadable, UnavailableReading
from tests.builders import (
    AT_ONCE,
    Step,
    at_zero_by_us,
    make_behavior,
    make_external_metric,
    make_fallback,
    make_rules,
    make_spec,
    passes_at,
    queue_of,
    run_passes,
    unreadable,
)

quick = hypothesis(max_examples=40, deadline=None)

BROKEN = unreadable()
OTHER = make_external_metric("backlog")
readings = st.sampled_from([BROKEN, BROKEN, BROKEN, queue_of(0), queue_of(40)])
others = st.sampled_from([queue_of(0), queue_of(0), queue_of(60), BROKEN])
strategies = st.sampled_from(["Static", "UseMax", "UseMin"])
behaviors = st.sampled_from([None, AT_ONCE, make_behavior(down=make_rules(window=0), up=make_rules(window=60))])


@st.composite
def lives(draw):
    """Passes 15 to 200 seconds apart: reads good and bad, sizes set by hand, restarts, targets and writes that fail."""
    steps, now = [], 0
    for _ in range(draw(st.integers(2, 9))):
        now += draw(st.sampled_from([15, 30, 100, 200]))
        steps.append(
            Step(
                now,
                (draw(readings), draw(others)),
                replicas=draw(st.sampled_from([None, None, None, None, 0, 1, 3, 50])),
                target=draw(st.sampled_from([*[None] * 6, TargetUnreadable("gone")])),
                selector=draw(st.sampled_from([*["app=web"] * 6, ""])),
                restarted=draw(st.booleans()),
            )
        )
    return steps


def spec_of(behavior, strategy="Static", minimum=0):
    metric = make_external_metric(fallback=make_fallback(6, strategy=strategy))
    return make_spec(metric, OTHER, minimum=minimum, maximum=30, behavior=behavior)


def clock_of(decision):
    slots = [slot.external for slot in decision.status.current_metrics or () if slot.external is not None]
    return next((slot for slot in slots if slot.metric.name == "queue_depth"), None)


@quick
@given(lives(), behaviors, strategies, st.integers(0, 2))
def test_it_never_goes_to_zero_while_failing(steps, behavior, strategy, minimum):
    decisions = run_passes(spec_of(behavior, strategy, minimum), steps, replicas=2, status=at_zero_by_us())

    for step, decision in zip(steps, decisions, strict=True):
        if isinstance(step.readings[0], UnavailableReading):
            assert decision.scale_to != 0


@quick
@given(lives(), behaviors, strategies)
def test_the_clock_starts_once_and_is_not_moved_until_a_good_read(steps, behavior, strategy):
    decisions = run_passes(spec_of(behavior, strategy), steps, replicas=2)

    since, fallen = None, False
    for decision in decisions:
        slot = clock_of(decision)
        if slot is None:
            assert since is None
        elif slot.first_failure_time is None:
            since, fallen = None, False
        else:
            assert since in (None, slot.first_failure_time)
            assert slot.fallback_status == "Fallback" or not fallen
            since, fallen = slot.first_failure_time, slot.fallback_status == "Fallback"
            assert (slot.fallback_replicas is not None) == (slot.captured_replicas is not None) == fallen


@quick
@given(lives(), behaviors, strategies)
def test_what_a_fallback_proposes_does_not_depend_on_its_place(steps, behavior, strategy):
    spec = spec_of(behavior, strategy)
    swapped = replace(spec, metrics=spec.metrics[::-1])

    one = run_passes(spec, steps, replicas=2)
    two = run_passes(swapped, [swapped_readings(step) for step in steps], replicas=2)

    assert [(each.replicas, clock_of(each)) for each in one] == [(each.replicas, clock_of(each)) for each in two]


def swapped_readings(step):
    return Step(**vars(step) | {"readings": step.readings[::-1]})


@quick
@given(lives(), behaviors)
def test_each_activation_is_told_once_and_so_is_each_recovery(steps, behavior):
    decisions = run_passes(spec_of(behavior), steps, replicas=2)
    told = [event.reason.removeprefix("ExternalMetricFallback") for one in decisions for event in one.events]
    edges = [edge for edge in told if edge in {"Activated", "Deactivated"}]

    assert edges == ["Activated", "Deactivated"] * (len(edges) // 2) + ["Activated"] * (len(edges) % 2)


@quick
@given(st.integers(1, 40), st.integers(0, 30), strategies)
def test_a_proposal_is_never_zero_and_static_where_nothing_was_captured(replicas, size, strategy):
    metric = make_external_metric(fallback=make_fallback(replicas, strategy=strategy))
    spec = make_spec(metric, minimum=0)

    *_, active = run_passes(spec, passes_at((0, 180), BROKEN), replicas=size, status=at_zero_by_us())
    slot = clock_of(active)

    expected = {"Static": replicas, "UseMax": max(size, replicas), "UseMin": min(size or replicas, replicas)}
    assert (slot.fallback_replicas, slot.captured_replicas) == (expected[strategy], size)
    assert slot.fallback_replicas >= 1

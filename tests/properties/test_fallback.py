"""Properties of the fallback over random sequences of reconciles."""

from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from msgspec.structs import replace

from autoscaler.types.observation import UnavailableReading, UnavailableTarget
from tests.builders import (
    NO_STABILIZATION,
    ReconcileInput,
    external_reading,
    inputs_at,
    make_behavior,
    make_external_metric,
    make_fallback,
    make_rules,
    make_spec,
    run_reconciles,
    scaled_to_zero_status,
    unavailable_reading,
)

quick = hypothesis(max_examples=40, deadline=None)

UNAVAILABLE = unavailable_reading()
OTHER = make_external_metric("backlog")
readings = st.sampled_from([UNAVAILABLE, UNAVAILABLE, UNAVAILABLE, external_reading(0), external_reading(40)])
others = st.sampled_from([external_reading(0), external_reading(0), external_reading(60), UNAVAILABLE])
strategies = st.sampled_from(["Static", "UseMax", "UseMin"])
behaviors = st.sampled_from(
    [None, NO_STABILIZATION, make_behavior(down=make_rules(window=0), up=make_rules(window=60))]
)


@st.composite
def sequences(draw):
    """Reconciles with failed and successful reads, manual scaling, restarts and unavailable targets."""
    inputs, now = [], 0
    for _ in range(draw(st.integers(2, 9))):
        now += draw(st.sampled_from([15, 30, 100, 200]))
        inputs.append(
            ReconcileInput(
                now,
                (draw(readings), draw(others)),
                replicas=draw(st.sampled_from([None, None, None, None, 0, 1, 3, 50])),
                target=draw(st.sampled_from([*[None] * 6, UnavailableTarget("gone")])),
                selector=draw(st.sampled_from([*["app=web"] * 6, ""])),
                restarted=draw(st.booleans()),
            )
        )
    return inputs


def spec_of(behavior, strategy="Static", minimum=0):
    metric = make_external_metric(fallback=make_fallback(6, strategy=strategy))
    return make_spec(metric, OTHER, minimum=minimum, maximum=30, behavior=behavior)


def fallback_status_of(decision):
    entries = [entry.external for entry in decision.status.current_metrics or () if entry.external is not None]
    return next((entry for entry in entries if entry.metric.name == "queue_depth"), None)


@quick
@given(sequences(), behaviors, strategies, st.integers(0, 2))
def test_failing_metric_prevents_scale_to_zero(inputs, behavior, strategy, minimum):
    decisions = run_reconciles(spec_of(behavior, strategy, minimum), inputs, replicas=2, status=scaled_to_zero_status())

    for reconcile, decision in zip(inputs, decisions, strict=True):
        if isinstance(reconcile.readings[0], UnavailableReading):
            assert decision.scale_to != 0


@quick
@given(sequences(), behaviors, strategies)
def test_first_failure_time_is_constant_until_a_successful_read(inputs, behavior, strategy):
    decisions = run_reconciles(spec_of(behavior, strategy), inputs, replicas=2)

    since, in_fallback = None, False
    for decision in decisions:
        entry = fallback_status_of(decision)
        if entry is None:
            assert since is None
        elif entry.first_failure_time is None:
            since, in_fallback = None, False
        else:
            assert since in (None, entry.first_failure_time)
            assert entry.fallback_status == "Fallback" or not in_fallback
            since, in_fallback = entry.first_failure_time, entry.fallback_status == "Fallback"
            assert (entry.fallback_replicas is not None) == (entry.captured_replicas is not None) == in_fallback


@quick
@given(sequences(), behaviors, strategies)
def test_fallback_does_not_depend_on_the_order_of_metrics(inputs, behavior, strategy):
    spec = spec_of(behavior, strategy)
    swapped = replace(spec, metrics=spec.metrics[::-1])

    one = run_reconciles(spec, inputs, replicas=2)
    two = run_reconciles(swapped, [swapped_readings(reconcile) for reconcile in inputs], replicas=2)

    assert [(each.replicas, fallback_status_of(each)) for each in one] == [
        (each.replicas, fallback_status_of(each)) for each in two
    ]


def swapped_readings(reconcile):
    return ReconcileInput(**vars(reconcile) | {"readings": reconcile.readings[::-1]})


@quick
@given(sequences(), behaviors)
def test_activation_and_recovery_events_alternate(inputs, behavior):
    decisions = run_reconciles(spec_of(behavior), inputs, replicas=2)
    reasons = [event.reason.removeprefix("ExternalMetricFallback") for one in decisions for event in one.events]
    edges = [edge for edge in reasons if edge in {"Activated", "Deactivated"}]

    assert edges == ["Activated", "Deactivated"] * (len(edges) // 2) + ["Activated"] * (len(edges) % 2)


@quick
@given(st.integers(1, 40), st.integers(0, 30), strategies)
def test_fallback_proposal_is_never_zero_and_follows_the_strategy(replicas, size, strategy):
    metric = make_external_metric(fallback=make_fallback(replicas, strategy=strategy))
    spec = make_spec(metric, minimum=0)

    *_, active = run_reconciles(spec, inputs_at((0, 180), UNAVAILABLE), replicas=size, status=scaled_to_zero_status())
    entry = fallback_status_of(active)

    expected = {"Static": replicas, "UseMax": max(size, replicas), "UseMin": min(size or replicas, replicas)}
    assert (entry.fallback_replicas, entry.captured_replicas) == (expected[strategy], size)
    assert entry.fallback_replicas >= 1

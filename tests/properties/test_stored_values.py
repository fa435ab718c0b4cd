"""Values that an API server accepts in a stored object never make a reconcile raise, however extreme they are."""

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from msgspec.structs import replace

from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.explain import explain
from autoscaler.controller.reporting import state_of
from autoscaler.defaults import with_defaults
from autoscaler.types.history import History
from autoscaler.types.observation import Observation
from autoscaler.types.status import Status
from autoscaler.wire import decode_autoscaler, encode
from tests.builders import ALL_GATES, NOW, SETTINGS, external_reading, make_target, unavailable_reading

SELECTOR = {"matchLabels": {"queue": "orders"}}
seconds = st.integers(0, 2**63 - 1) | st.sampled_from([180, 2**31, 250_000_000_000, 2**63 - 1])
offsets = st.sampled_from(["Z", "+00:00", "+02:00", "-05:00", "+14:00", "-12:00"])
times = st.builds(lambda moment, offset: f"{moment.isoformat()}{offset}", st.datetimes(), offsets)
FIRST = "0001-01-01T00:00:00+14:00"
LAST = "9999-12-31T23:59:59-12:00"


def stored(duration, failing_since, scaled_at, changed_at, paused_until):
    external = {
        "metric": {"name": "queue", "selector": SELECTOR},
        "target": {"type": "AverageValue", "averageValue": "5"},
        "fallback": {"replicas": 9, "failureDurationSeconds": duration},
    }
    entry = {"metric": external["metric"], "current": {}, "fallbackStatus": "Normal", "firstFailureTime": failing_since}
    conditions = [{"type": "AbleToScale", "status": "True", "lastTransitionTime": changed_at}]
    return {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 20,
            "metrics": [{"type": "External", "external": external}],
            "mode": "Paused",
            "pausedUntil": paused_until,
        },
        "status": {
            "desiredReplicas": 3,
            "lastScaleTime": scaled_at,
            "conditions": conditions,
            "currentMetrics": [{"type": "External", "external": entry}],
        },
    }


@hypothesis(deadline=None)
@given(
    st.builds(stored, seconds, times, times, times, times),
    st.sampled_from([external_reading(40), unavailable_reading()]),
)
@example(stored(250_000_000_001, "2026-03-01T11:00:00Z", FIRST, FIRST, FIRST), unavailable_reading())
@example(stored(180, FIRST, LAST, LAST, LAST), unavailable_reading())
@example(stored(180, LAST, LAST, LAST, FIRST), external_reading(40))
def test_extreme_durations_and_times_do_not_raise(document, reading):
    autoscaler = decode_autoscaler(document)
    autoscaler = replace(autoscaler, spec=with_defaults(autoscaler.spec))

    decision = decide(
        autoscaler=autoscaler,
        observation=Observation(make_target(3), (), (reading,)),
        history=History(),
        settings=SETTINGS,
        gates=ALL_GATES,
        now=NOW,
    )

    explain(decision)
    encode(decision.status)
    state_of("shop/web", decision)


@pytest.mark.parametrize("duration", [250_000_000_000, 2**63 - 1])
def test_fallback_after_more_time_than_the_calendar_has_never_becomes_active(duration):
    autoscaler = decode_autoscaler(stored(duration, "2026-03-01T11:00:00Z", FIRST, FIRST, FIRST))
    observation = Observation(make_target(3), (), (unavailable_reading(),))

    decision = decide(
        autoscaler=replace(autoscaler, status=Status()),
        observation=observation,
        history=History(),
        settings=SETTINGS,
        gates=ALL_GATES,
        now=NOW,
    )

    (entry,) = decision.status.current_metrics or ()
    assert entry.external is not None
    assert entry.external.fallback_status == "Normal"

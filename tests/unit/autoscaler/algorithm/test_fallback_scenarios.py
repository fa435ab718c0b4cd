"""Fallback of external metrics over several reconciles: the 16 acceptance scenarios and edge cases."""

import pytest
from msgspec.structs import replace

from autoscaler.algorithm.explain import explain
from autoscaler.defaults import with_defaults
from autoscaler.readings import read_external
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.limiting_factor import LimitingFactor
from autoscaler.types.observation import BadSelector, FailureClass, UnavailableTarget
from autoscaler.types.spec import Policy
from autoscaler.types.status import UNREAD, Status
from autoscaler.types.steps import MetricFallbackStep, MetricUnavailableStep, RecommendationStep
from autoscaler.validation import problems
from tests.builders import (
    ALL_GATES,
    CONNECTION_REFUSED,
    FALLBACK_GATE_OFF,
    NO_STABILIZATION,
    NOW,
    ReconcileInput,
    ago,
    condition_reasons,
    decide_once,
    event_messages,
    event_reasons,
    external_reading,
    external_status,
    failing_status,
    fallback_status,
    inputs_at,
    later,
    make_autoscaler,
    make_behavior,
    make_condition,
    make_external_metric,
    make_fallback,
    make_observation,
    make_pods_metric,
    make_resource_metric,
    make_rules,
    make_spec,
    pod_reading,
    run_reconciles,
    scaled_to_zero_status,
    transition_time,
    unavailable_reading,
)
from tests.builders import condition_content as full_condition_content

KIND = "ExternalMetricFallbackActive"
UNAVAILABLE = unavailable_reading()
WHY = f"unable to get external metric shop/queue_depth/nil: {CONNECTION_REFUSED}"
FAILED = ("FailedGetExternalMetric", WHY)
NOT_COMPUTED = (
    "FailedComputeMetricsReplicas",
    (
        "invalid metrics (1 invalid out of 1), first error is: failed to get queue_depth external metric value: "
        f"failed to get queue_depth external metric: {WHY}"
    ),
)
PENDING = (
    "False",
    "FallbackPending",
    "external metric 'queue_depth' is unreadable since 2026-03-01T12:00:00Z, not yet in fallback",
)
READABLE = ("False", "NoFailureKnown", "no external metric with a fallback is known to fail")
FEATURE_OFF = ("Unknown", "FeatureDisabled", "the feature gate HPAExternalMetricFallback is off")


def identifier_of(metric):
    assert metric.external is not None
    return metric.external.metric


def fallback_active(replicas, name="queue_depth", since="2026-03-01T12:00:00Z"):
    message = f"external metric '{name}' is unreadable since {since}, using {replicas} replicas"
    return ("True", "FallbackActive", message)


def activated(replicas, after="3m0s", name="queue_depth"):
    return (
        "ExternalMetricFallbackActivated",
        (
            f"Fallback activated for external metric '{name}' after {after} of consecutive failures, "
            f"using fallback replica count: {replicas}"
        ),
    )


def deactivated(after, name="queue_depth"):
    return (
        "ExternalMetricFallbackDeactivated",
        f"External metric '{name}' is readable again after {after}; fallback deactivated",
    )


def with_fallback(replicas=10, seconds=180, strategy="Static", **parts):
    return make_spec(make_external_metric(fallback=make_fallback(replicas, seconds, strategy)), **parts)


def metrics_of(decision):
    """Return the metrics of the status without the causes of failures, which most tests do not concern."""
    return without_causes(decision.status.current_metrics)


def without_causes(metrics):
    return metrics and tuple(
        metric if metric.external is None else replace(metric, external=replace(metric.external, failure_message=None))
        for metric in metrics
    )


def condition_content(decision, kind):
    """Return status, reason and message of a condition, without the causes in that of fallbacks."""
    content = full_condition_content(decision, kind)
    if content is None or kind != KIND:
        return content
    status, reason, message = content
    return status, reason, "; ".join(part.partition(": ")[0] for part in message.split("; "))


# --- 1 to 16 ---------------------------------------------------------------------------------------------------------


def test_01_failing_metric_blocks_for_179_seconds_and_falls_back_at_180():
    first, waiting, active = run_reconciles(with_fallback(), inputs_at((0, 179, 180), UNAVAILABLE), replicas=8)

    assert (first.replicas, first.scale_to, metrics_of(first)) == (8, None, (failing_status(),))
    assert condition_content(first, KIND) == PENDING
    assert event_messages(first) == [FAILED, NOT_COMPUTED]

    assert (waiting.replicas, waiting.scale_to, metrics_of(waiting)) == (8, None, (failing_status(),))
    assert condition_content(waiting, KIND) == PENDING
    assert event_messages(waiting) == [NOT_COMPUTED]

    assert (active.replicas, active.scale_to, metrics_of(active)) == (10, 10, (fallback_status(captured=8),))
    assert condition_content(active, KIND) == fallback_active(10)
    assert event_messages(active) == [
        activated(10),
        ("SuccessfulRescale", "New size: 10; reason: the fallback of external metric queue_depth(nil) proposes 10"),
    ]


@pytest.mark.parametrize(
    ("milli", "replicas"),
    [
        pytest.param(1000, 12, id="cpu proposes 12, fallback 8"),
        pytest.param(250, 8, id="cpu proposes 3, fallback 8"),
    ],
)
def test_02_highest_of_metric_proposal_and_fallback_is_used(milli, replicas):
    spec = make_spec(make_resource_metric(), make_external_metric(fallback=make_fallback(8)))
    slow = pod_reading(*[500] * 6)

    _, active = run_reconciles(
        spec,
        [ReconcileInput(0, (slow, UNAVAILABLE)), ReconcileInput(180, (pod_reading(*[milli] * 6), UNAVAILABLE))],
        replicas=6,
    )

    assert (active.replicas, active.scale_to) == (replicas, replicas)
    assert metrics_of(active)[1] == fallback_status(replicas=8, captured=6)
    assert condition_content(active, KIND) == fallback_active(8)


@pytest.mark.parametrize(
    ("fallback", "behavior", "size", "proposal"),
    [
        pytest.param(make_fallback(10), NO_STABILIZATION, 10, 10, id="Static without limits"),
        pytest.param(
            make_fallback(10),
            make_behavior(down=make_rules(Policy("Pods", 5, 60), window=0)),
            45,
            10,
            id="Static limited by policies",
        ),
        pytest.param(
            make_fallback(10, strategy="UseMax"), NO_STABILIZATION, 50, 50, id="UseMax with more current replicas"
        ),
        pytest.param(
            make_fallback(80, strategy="UseMax"), NO_STABILIZATION, 80, 80, id="UseMax with more fallback replicas"
        ),
        pytest.param(
            make_fallback(80, strategy="UseMin"), NO_STABILIZATION, 50, 50, id="UseMin with fewer current replicas"
        ),
        pytest.param(
            make_fallback(10, strategy="UseMin"), NO_STABILIZATION, 10, 10, id="UseMin with fewer fallback replicas"
        ),
    ],
)
def test_03_strategy_determines_the_proposal_at_50_replicas(fallback, behavior, size, proposal):
    spec = make_spec(make_external_metric(fallback=fallback), behavior=behavior)

    *_, active = run_reconciles(spec, inputs_at((0, 180), UNAVAILABLE), replicas=50)

    assert (active.replicas, metrics_of(active)) == (size, (fallback_status(replicas=proposal, captured=50),))
    assert condition_content(active, KIND) == fallback_active(proposal)


def test_03_fallback_to_fewer_replicas_is_stabilized():
    restarted = ReconcileInput(170, (UNAVAILABLE,), restarted=True)  # seeds the history with 50

    _, _, active, held, free = run_reconciles(
        with_fallback(),
        [ReconcileInput(0, (UNAVAILABLE,)), restarted, *inputs_at((180, 470, 471), UNAVAILABLE)],
        replicas=50,
    )

    assert (active.replicas, condition_reasons(active)["AbleToScale"]) == (50, ("True", "ScaleDownStabilized"))
    assert active.may_change_at == later(470)
    assert (held.replicas, free.replicas) == (50, 10)


def test_04_change_of_leader_keeps_the_failure_run():
    inputs = [
        ReconcileInput(0, (UNAVAILABLE,)),
        ReconcileInput(170, (UNAVAILABLE,), restarted=True),
        ReconcileInput(180, (UNAVAILABLE,)),
    ]

    _, handed_over, active = run_reconciles(with_fallback(), inputs, replicas=8)

    assert (event_messages(handed_over), metrics_of(handed_over)) == ([NOT_COMPUTED], (failing_status(),))
    assert (active.replicas, metrics_of(active)) == (10, (fallback_status(captured=8),))
    assert event_messages(active)[0] == activated(10)


def test_05_manual_scaling_above_max_replicas_keeps_the_failure_run():
    inputs = [
        ReconcileInput(0, (UNAVAILABLE,)),
        ReconcileInput(100, (UNAVAILABLE,), replicas=150),
        ReconcileInput(179, (UNAVAILABLE,)),
        ReconcileInput(180, (UNAVAILABLE,)),
    ]

    _, clamped, waiting, active = run_reconciles(with_fallback(behavior=NO_STABILIZATION), inputs, replicas=8)

    assert (clamped.scale_to, metrics_of(clamped), condition_content(clamped, KIND)) == (
        100,
        (failing_status(),),
        PENDING,
    )
    assert event_messages(clamped) == [
        ("SuccessfulRescale", "New size: 100; reason: Current number of replicas above Spec.MaxReplicas")
    ]
    assert (waiting.replicas, metrics_of(waiting)) == (100, (failing_status(),))
    assert (active.replicas, metrics_of(active)) == (10, (fallback_status(captured=100),))


def test_06_same_metric_with_two_selectors_falls_back_separately():
    one, other = (
        make_external_metric(selector={"queue": which}, fallback=make_fallback(10)) for which in ("red", "blue")
    )

    *_, active = run_reconciles(
        make_spec(one, other), inputs_at((0, 180), external_reading(30), UNAVAILABLE), replicas=6
    )

    assert active.replicas == 10
    assert metrics_of(active) == (
        external_status(average="5", metric=identifier_of(one), fallback_status="Normal"),
        fallback_status(captured=6, metric=identifier_of(other)),
    )
    assert condition_content(active, KIND) == fallback_active(10, name="queue_depth{queue=blue}")
    assert activated(10, name="queue_depth{queue=blue}") in event_messages(active)
    (text,) = [step.text for step in explain(active).steps if step.step == "MetricFallback"]
    assert text.startswith("queue_depth{queue=blue}: fallback proposes 10 replicas: failing since 12:00:00 (refused): ")
    assert text.endswith("connection refused")


def test_07_reordered_metrics_keep_their_failure_runs():
    broken, sound = make_external_metric(fallback=make_fallback(10)), make_external_metric("backlog")
    inputs = [
        ReconcileInput(0, (UNAVAILABLE, external_reading(40))),
        ReconcileInput(100, (external_reading(40), UNAVAILABLE), spec=make_spec(sound, broken)),
        ReconcileInput(180, (UNAVAILABLE, external_reading(40)), spec=make_spec(broken, sound)),
    ]

    _, swapped, active = run_reconciles(make_spec(broken, sound), inputs, replicas=8)

    assert metrics_of(swapped) == (external_status("backlog", average="5"), failing_status())
    assert (active.replicas, metrics_of(active)) == (
        10,
        (fallback_status(captured=8), external_status("backlog", average="5")),
    )


def test_08_fallback_scales_up_after_scaling_to_zero():
    quick = make_behavior(up=make_rules(Policy("Pods", 50, 60)))
    spec = with_fallback(minimum=0, behavior=quick)

    at_zero, scaled_up = run_reconciles(
        spec, inputs_at((0, 180), UNAVAILABLE), replicas=0, status=scaled_to_zero_status()
    )

    assert (at_zero.replicas, at_zero.scale_to, metrics_of(at_zero)) == (0, None, (failing_status(),))
    assert (scaled_up.replicas, scaled_up.scale_to, metrics_of(scaled_up)) == (10, 10, (fallback_status(captured=0),))
    assert condition_reasons(scaled_up)["ScaledToZero"] == ("False", "NotScaledToZero")


def test_08_scale_up_from_zero_by_a_fallback_is_rate_limited():
    inputs = inputs_at((0, 180, 195, 210), UNAVAILABLE)

    decisions = run_reconciles(with_fallback(minimum=0), inputs, replicas=0, status=scaled_to_zero_status())

    assert [one.replicas for one in decisions] == [0, 4, 8, 10]


def test_08_fallback_does_not_scale_up_from_zero_set_by_a_user():
    decisions = run_reconciles(with_fallback(minimum=0), inputs_at((0, 180, 600), UNAVAILABLE), replicas=0)

    assert [(one.replicas, one.scale_to, metrics_of(one), event_messages(one)) for one in decisions] == [
        (0, None, None, [])
    ] * 3
    assert condition_content(decisions[-1], KIND) == (
        "Unknown",
        "ScalingDisabled",
        "no metric was read, because scaling is disabled",
    )


def test_09_successful_read_ends_the_failure_run():
    inputs = [
        ReconcileInput(0, (UNAVAILABLE,)),
        ReconcileInput(60, (external_reading(40),)),
        *inputs_at((75, 180, 254, 255), UNAVAILABLE),
    ]

    _, good, again, still, almost, active = run_reconciles(with_fallback(), inputs, replicas=8)

    assert (metrics_of(good), condition_content(good, KIND)) == (
        (external_status(average="5", fallback_status="Normal"),),
        READABLE,
    )
    assert (metrics_of(again), event_messages(again)) == ((failing_status(since=later(75)),), [FAILED, NOT_COMPUTED])
    assert (still.replicas, almost.replicas, active.replicas) == (8, 8, 10)
    assert metrics_of(active) == (fallback_status(since=later(75), captured=8),)


def test_10_recovery_sends_one_event():
    inputs = [*inputs_at((0, 180), UNAVAILABLE), *inputs_at((450, 465), external_reading(50))]

    *_, recovered, after = run_reconciles(with_fallback(), inputs, replicas=10)

    assert (recovered.replicas, metrics_of(recovered)) == (
        10,
        (external_status(average="5", fallback_status="Normal"),),
    )
    assert condition_content(recovered, KIND) == READABLE
    assert event_messages(recovered) == [deactivated("7m30s")]
    assert transition_time(recovered, KIND) == later(450)
    assert (event_messages(after), after.status_changed) == ([], False)


def test_11_unavailable_metric_without_fallback_blocks_scale_down_and_is_named():
    spec = make_spec(
        make_external_metric(fallback=make_fallback(5)), make_external_metric("orders"), make_external_metric("backlog")
    )

    *_, active = run_reconciles(spec, inputs_at((0, 180), UNAVAILABLE, UNAVAILABLE, external_reading(15)), replicas=20)

    assert (active.replicas, active.scale_to) == (20, None)
    assert condition_content(active, KIND) == fallback_active(5)
    assert condition_content(active, "ScalingActive") == (
        "False",
        "FailedGetExternalMetric",
        (
            "the HPA was unable to compute the replica count: "
            f"unable to get external metric shop/orders/nil: {CONNECTION_REFUSED}"
        ),
    )
    assert metrics_of(active) == (
        fallback_status(replicas=5, captured=20),
        UNREAD,
        external_status("backlog", average="750m"),
    )


def test_12_fallback_above_max_replicas_is_limited():
    *_, active = run_reconciles(with_fallback(20, maximum=15), inputs_at((0, 180), UNAVAILABLE), replicas=10)

    assert (active.replicas, active.scale_to) == (15, 15)
    assert condition_content(active, "ScalingLimited") == (
        "True",
        "TooManyReplicas",
        "the desired replica count is more than the maximum replica count",
    )
    assert metrics_of(active) == (fallback_status(replicas=20, captured=10),)


def test_13_surge_of_a_rollout_does_not_change_captured_replicas():
    inputs = [
        ReconcileInput(0, (UNAVAILABLE,)),
        ReconcileInput(180, (UNAVAILABLE,), status_replicas=13),
        ReconcileInput(195, (UNAVAILABLE,), status_replicas=14),
    ]

    _, active, after = run_reconciles(with_fallback(5, strategy="UseMax"), inputs, replicas=10)

    assert (active.replicas, metrics_of(active)) == (10, (fallback_status(replicas=10, captured=10),))
    assert (after.replicas, metrics_of(after)) == (10, (fallback_status(replicas=10, captured=10),))


@pytest.mark.parametrize(
    "reading",
    [
        *(pytest.param(unavailable_reading("why", failure), id=f"{failure}") for failure in FailureClass),
        pytest.param(read_external((), NOW), id="no series"),
    ],
)
def test_14_every_retrieval_failure_starts_a_failure_run(reading):
    decision = decide_once(with_fallback(), make_observation(reading))

    assert metrics_of(decision) == (failing_status(),)
    assert condition_content(decision, KIND) == PENDING


@pytest.mark.parametrize(
    ("observation", "status"),
    [
        pytest.param(
            make_observation(external_reading(40), pods=()),
            external_status(fallback_status="Normal"),
            id="no pods",
        ),
        pytest.param(make_observation(BadSelector("bad")), UNREAD, id="invalid selector"),
    ],
)
def test_14_other_failures_start_no_failure_run(observation, status):
    spec = make_spec(make_external_metric(value="5", fallback=make_fallback(10)))

    decision = decide_once(spec, observation)

    assert (decision.failed, metrics_of(decision)) == (True, (status,))
    assert condition_content(decision, KIND) == READABLE


def test_14_unavailable_target_starts_no_failure_run():
    decision = decide_once(with_fallback(), make_observation(UNAVAILABLE, target=UnavailableTarget("gone")))

    assert metrics_of(decision) is None


def test_15_switching_the_gate_off_and_on_starts_a_new_failure_run():
    inputs = [
        ReconcileInput(0, (UNAVAILABLE,)),
        ReconcileInput(100, (UNAVAILABLE,), gates=FALLBACK_GATE_OFF),
        ReconcileInput(115, (UNAVAILABLE,)),
        ReconcileInput(130, (UNAVAILABLE,), gates=ALL_GATES),
        ReconcileInput(309, (UNAVAILABLE,)),
        ReconcileInput(310, (UNAVAILABLE,)),
    ]

    _, off, still_off, on, waiting, active = run_reconciles(with_fallback(), inputs, replicas=8)

    assert (metrics_of(off), condition_content(off, KIND), event_messages(off)) == (
        (failing_status(),),
        FEATURE_OFF,
        [FAILED, NOT_COMPUTED],
    )
    assert (metrics_of(still_off), event_messages(still_off)) == ((failing_status(),), [FAILED, NOT_COMPUTED])
    assert (metrics_of(on), event_messages(on)) == ((failing_status(since=later(130)),), [FAILED, NOT_COMPUTED])
    assert (waiting.replicas, active.replicas) == (8, 10)


def test_15_restart_in_fallback_keeps_the_fallback():
    inputs = [*inputs_at((0, 180), UNAVAILABLE), ReconcileInput(200, (UNAVAILABLE,), restarted=True)]

    _, active, restarted = run_reconciles(with_fallback(strategy="UseMax"), inputs, replicas=8)

    assert (metrics_of(active), metrics_of(restarted)) == (
        (fallback_status(captured=8),),
        (fallback_status(captured=8),),
    )
    assert (restarted.replicas, event_messages(restarted)) == (10, [])


def test_15_switching_the_gate_on_with_an_unavailable_target_starts_a_new_failure_run():
    inputs = [
        ReconcileInput(0, (UNAVAILABLE,)),
        ReconcileInput(100, (UNAVAILABLE,), gates=FALLBACK_GATE_OFF),
        ReconcileInput(130, (UNAVAILABLE,), gates=ALL_GATES, target=UnavailableTarget("gone")),
        ReconcileInput(145, (UNAVAILABLE,)),
    ]

    *_, available = run_reconciles(with_fallback(), inputs, replicas=8)

    assert metrics_of(available) == (failing_status(since=later(145)),)


def test_15_fallback_stays_in_the_status_while_the_gate_is_off():
    inputs = [*inputs_at((0, 180), UNAVAILABLE), ReconcileInput(195, (external_reading(60),), gates=FALLBACK_GATE_OFF)]

    *_, off = run_reconciles(with_fallback(), inputs, replicas=10)

    assert off.replicas == 12
    assert metrics_of(off) == (fallback_status(captured=10, average="6"),)
    assert condition_content(off, KIND) == FEATURE_OFF


FIELD = "spec.metrics[0].external.fallback"


@pytest.mark.parametrize(
    ("fallback", "problem"),
    [
        pytest.param(
            make_fallback(seconds=179),
            f"{FIELD}.failureDurationSeconds: Invalid value: 179: must be greater than or equal to 180",
            id="failureDurationSeconds too small",
        ),
        pytest.param(
            make_fallback(0),
            f"{FIELD}.replicas: Invalid value: 0: must be greater than or equal to 1",
            id="replicas is 0",
        ),
        pytest.param(
            make_fallback(None),
            f"{FIELD}.replicas: Required value: must specify the replicas to propose while the metric cannot be read",
            id="replicas missing",
        ),
        pytest.param(
            make_fallback(strategy="Guess"),
            f'{FIELD}.strategy: Unsupported value: "Guess": supported values: "Static", "UseMax", "UseMin"',
            id="unknown strategy",
        ),
    ],
)
def test_16_invalid_fallback_is_rejected_with_its_path(fallback, problem):
    autoscaler = make_autoscaler(with_defaults(make_spec(make_external_metric(fallback=fallback))))

    assert [str(one) for one in problems(autoscaler, gates=ALL_GATES, settings=Settings())] == [problem]


# --- events ----------------------------------------------------------------------------------------------------------


def test_events_are_sent_only_on_transitions():
    inputs = [
        *inputs_at((0, 15, 180, 195), UNAVAILABLE),
        *inputs_at((210, 225), external_reading(50)),
        ReconcileInput(240, (UNAVAILABLE,)),
    ]

    decisions = run_reconciles(with_fallback(), inputs, replicas=10)

    assert event_reasons(decisions) == [
        ["FailedGetExternalMetric", "FailedComputeMetricsReplicas"],
        ["FailedComputeMetricsReplicas"],
        ["ExternalMetricFallbackActivated"],
        [],
        ["ExternalMetricFallbackDeactivated"],
        [],
        ["FailedGetExternalMetric", "FailedComputeMetricsReplicas"],
    ]


def test_metric_without_fallback_sends_its_event_in_every_reconcile():
    decisions = run_reconciles(make_spec(), inputs_at((0, 180, 360), UNAVAILABLE), replicas=8)

    assert [event_messages(one) for one in decisions] == [[FAILED, NOT_COMPUTED]] * 3
    assert [metrics_of(one) for one in decisions] == [(UNREAD,)] * 3
    assert [condition_content(one, KIND) for one in decisions] == [None] * 3


def test_fallback_is_ignored_with_the_gate_off():
    decisions = run_reconciles(
        with_fallback(), inputs_at((0, 180, 360), UNAVAILABLE), replicas=8, gates=FALLBACK_GATE_OFF
    )

    assert [(one.replicas, event_messages(one), metrics_of(one)) for one in decisions] == [
        (8, [FAILED, NOT_COMPUTED], (UNREAD,))
    ] * 3
    assert condition_content(decisions[-1], KIND) == FEATURE_OFF


def test_status_of_a_metric_with_the_gate_off_equals_upstream():
    decision = decide_once(with_fallback(), make_observation(external_reading(15)), gates=FALLBACK_GATE_OFF)

    assert (decision.replicas, metrics_of(decision)) == (3, (external_status(average="5"),))


def test_condition_is_removed_with_the_fallback_in_the_spec():
    inputs = [ReconcileInput(0, (UNAVAILABLE,)), ReconcileInput(15, (UNAVAILABLE,), spec=make_spec())]

    with_it, without = run_reconciles(with_fallback(), inputs)

    assert condition_content(with_it, KIND) == PENDING
    assert (condition_content(without, KIND), metrics_of(without)) == (None, (UNREAD,))


def test_condition_names_every_metric_in_fallback():
    spec = make_spec(
        make_external_metric("a", fallback=make_fallback(4)), make_external_metric("b", fallback=make_fallback(6))
    )

    *_, active = run_reconciles(
        spec, [ReconcileInput(0, (UNAVAILABLE, external_reading(15))), *inputs_at((20, 200), UNAVAILABLE, UNAVAILABLE)]
    )

    assert active.replicas == 6
    assert condition_content(active, KIND) == (
        "True",
        "FallbackActive",
        (
            "external metric 'a' is unreadable since 2026-03-01T12:00:00Z, using 4 replicas; "
            "external metric 'b' is unreadable since 2026-03-01T12:00:20Z, using 6 replicas"
        ),
    )
    assert event_messages(active)[:2] == [activated(4, after="3m20s", name="a"), activated(6, name="b")]


def test_winning_fallback_is_named_in_condition_and_rescale_reason():
    *_, active = run_reconciles(with_fallback(4), inputs_at((0, 180), UNAVAILABLE), replicas=3)

    assert condition_content(active, "ScalingActive") == (
        "True",
        "ValidMetricFound",
        (
            "the HPA was able to successfully calculate a replica count from the fallback of external metric "
            "queue_depth(nil)"
        ),
    )
    assert active.rescale_reason == "the fallback of external metric queue_depth(nil) proposes 4"


def test_fallback_to_the_current_replicas_has_no_rescale_reason():
    *_, active = run_reconciles(with_fallback(3), inputs_at((0, 180), UNAVAILABLE), replicas=3)

    assert (active.scale_to, active.rescale_reason, event_messages(active)) == (None, "", [activated(3)])


# --- failure runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(ReconcileInput(100, (UNAVAILABLE,), replicas=150), id="above maxReplicas"),
        pytest.param(ReconcileInput(100, (UNAVAILABLE,), replicas=1), id="below minReplicas"),
        pytest.param(ReconcileInput(100, (UNAVAILABLE,), selector=""), id="target without selector"),
        pytest.param(ReconcileInput(100, (UNAVAILABLE,), replicas=0), id="zero replicas set by a user"),
        pytest.param(ReconcileInput(100, (UNAVAILABLE,), target=UnavailableTarget("gone")), id="unavailable target"),
        pytest.param(ReconcileInput(100, (UNAVAILABLE,), restarted=True), id="restart"),
        pytest.param(ReconcileInput(100, (BadSelector("bad"),)), id="invalid metric selector"),
    ],
)
def test_failure_run_is_preserved_by_other_events(between):
    inputs = [
        ReconcileInput(0, (UNAVAILABLE,)),
        between,
        ReconcileInput(179, (UNAVAILABLE,), replicas=8),
        ReconcileInput(180, (UNAVAILABLE,)),
    ]

    _, during, waiting, active = run_reconciles(with_fallback(minimum=2), inputs, replicas=8)

    assert metrics_of(during) == (failing_status(),)
    assert (waiting.replicas, metrics_of(waiting)) == (8, (failing_status(),))
    assert (active.replicas, metrics_of(active)) == (10, (fallback_status(captured=8),))


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(ReconcileInput(200, (UNAVAILABLE,), replicas=150), id="above maxReplicas"),
        pytest.param(ReconcileInput(200, (UNAVAILABLE,), selector=""), id="target without selector"),
        pytest.param(ReconcileInput(200, (UNAVAILABLE,), replicas=0), id="zero replicas set by a user"),
        pytest.param(ReconcileInput(200, (UNAVAILABLE,), target=UnavailableTarget("gone")), id="unavailable target"),
        pytest.param(ReconcileInput(200, (UNAVAILABLE,), write_fails="conflict"), id="failed write of the scale"),
    ],
)
def test_captured_replicas_are_kept_until_recovery(between):
    inputs = [
        ReconcileInput(0, (UNAVAILABLE,)),
        ReconcileInput(180, (UNAVAILABLE,)),
        between,
        ReconcileInput(215, (UNAVAILABLE,), replicas=30),
        ReconcileInput(230, (external_reading(150),)),
        ReconcileInput(245, (UNAVAILABLE,)),
        ReconcileInput(425, (UNAVAILABLE,)),
    ]

    _, active, during, after, recovered, _, anew = run_reconciles(
        with_fallback(12, strategy="UseMax", behavior=NO_STABILIZATION), inputs, replicas=20
    )

    assert metrics_of(active) == metrics_of(during) == metrics_of(after) == (fallback_status(replicas=20, captured=20),)
    assert after.replicas == 20
    assert metrics_of(recovered) == (external_status(average="7500m", fallback_status="Normal"),)
    assert metrics_of(anew) == (fallback_status(since=later(245), replicas=30, captured=30),)


def test_failed_write_at_activation_keeps_failure_run_and_captured_replicas():
    inputs = [
        ReconcileInput(0, (UNAVAILABLE,)),
        ReconcileInput(180, (UNAVAILABLE,), write_fails="conflict"),
        ReconcileInput(195, (UNAVAILABLE,)),
    ]

    _, failed, written = run_reconciles(with_fallback(), inputs, replicas=8)

    assert (failed.scale_to, metrics_of(failed)) == (None, (fallback_status(captured=8),))
    assert [reason for reason, _ in event_messages(failed)] == ["ExternalMetricFallbackActivated", "FailedRescale"]
    assert (written.scale_to, metrics_of(written)) == (10, (fallback_status(captured=8),))
    assert [reason for reason, _ in event_messages(written)] == ["SuccessfulRescale"]


def test_first_failure_time_in_the_future_counts_as_now():
    decision = decide_once(
        with_fallback(),
        make_observation(UNAVAILABLE),
        status=Status(current_metrics=(failing_status(since=later(3600)),)),
    )

    assert metrics_of(decision) == (failing_status(since=NOW),)
    assert event_messages(decision) == [NOT_COMPUTED]


def test_first_failure_time_is_stored_in_whole_seconds():
    started = decide_once(with_fallback(), make_observation(UNAVAILABLE), now=later(0.9))

    assert metrics_of(started) == (failing_status(since=NOW),)

    active = decide_once(with_fallback(), make_observation(UNAVAILABLE), status=started.status, now=later(180))

    assert metrics_of(active) == (fallback_status(captured=3),)


def test_two_entries_of_one_metric_share_a_failure_run_and_its_events():
    low = make_external_metric(average="5", fallback=make_fallback(4))
    high = make_external_metric(average="8", fallback=make_fallback(6))
    inputs = [
        *inputs_at((0, 180), UNAVAILABLE, UNAVAILABLE),
        ReconcileInput(195, (external_reading(30), external_reading(48))),
    ]

    first, active, recovered = run_reconciles(make_spec(low, high), inputs)

    assert event_messages(first)[:-1] == [FAILED]
    assert (active.replicas, metrics_of(active)) == (6, (fallback_status(replicas=4), fallback_status(replicas=6)))
    assert [reason for reason, _ in event_messages(active)] == ["ExternalMetricFallbackActivated", "SuccessfulRescale"]
    assert event_messages(recovered) == [deactivated("3m15s")]


def test_two_entries_of_one_metric_with_different_durations_send_one_activation_event():
    patient = make_external_metric(average="8", fallback=make_fallback(6, seconds=300))
    hasty = make_external_metric(average="5", fallback=make_fallback(4))

    decisions = run_reconciles(
        make_spec(patient, hasty), inputs_at((0, 180, 300), UNAVAILABLE, UNAVAILABLE), replicas=4
    )

    assert metrics_of(decisions[1]) == (failing_status(), fallback_status(replicas=4, captured=4))
    assert metrics_of(decisions[2]) == (
        fallback_status(replicas=6, captured=4),
        fallback_status(replicas=4, captured=4),
    )
    assert [[text for reason, text in event_messages(one) if reason.startswith("External")] for one in decisions] == [
        [],
        [activated(4)[1]],
        [],
    ]


def test_earlier_first_failure_time_of_two_entries_counts():
    status = Status(current_metrics=(fallback_status(since=ago(10), replicas=4), failing_status(since=ago(400))))

    decision = decide_once(with_fallback(4), make_observation(UNAVAILABLE), status=status)

    assert metrics_of(decision) == (fallback_status(since=ago(400), replicas=4),)


def test_equivalent_selectors_identify_the_same_metric():
    written, rewritten = (
        make_external_metric(selector=labels, fallback=make_fallback(10))
        for labels in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})
    )
    inputs = [ReconcileInput(0, (UNAVAILABLE,)), ReconcileInput(180, (UNAVAILABLE,), spec=make_spec(rewritten))]

    *_, active = run_reconciles(make_spec(written), inputs, replicas=8)

    assert active.replicas == 10


def test_changed_selector_starts_a_new_failure_run():
    inputs = [
        ReconcileInput(0, (UNAVAILABLE,)),
        ReconcileInput(
            180, (UNAVAILABLE,), spec=make_spec(make_external_metric(selector={"a": "1"}, fallback=make_fallback(10)))
        ),
    ]

    *_, anew = run_reconciles(with_fallback(), inputs, replicas=8)

    assert (anew.replicas, metrics_of(anew)[0].external.first_failure_time) == (8, later(180))


@pytest.mark.parametrize(
    ("edited", "replicas", "proposal"),
    [
        pytest.param(with_fallback(12), 12, 12, id="replicas"),
        pytest.param(with_fallback(4, strategy="UseMax"), 8, 8, id="strategy"),
        pytest.param(
            make_spec(make_external_metric(average="7", fallback=make_fallback(10))), 10, 10, id="target of the metric"
        ),
    ],
)
def test_edited_fallback_keeps_the_failure_run(edited, replicas, proposal):
    inputs = [ReconcileInput(0, (UNAVAILABLE,)), ReconcileInput(180, (UNAVAILABLE,), spec=edited)]

    *_, active = run_reconciles(with_fallback(), inputs, replicas=8)

    assert (active.replicas, metrics_of(active)) == (replicas, (fallback_status(replicas=proposal, captured=8),))


@pytest.mark.parametrize(
    ("seconds", "replicas", "status"),
    [
        pytest.param(300, 8, failing_status(), id="longer duration"),
        pytest.param(200, 10, fallback_status(captured=8), id="shorter duration"),
        pytest.param(None, 10, fallback_status(captured=8), id="default duration"),
    ],
)
def test_an_edited_failure_duration_counts_from_the_first_failure(seconds, replicas, status):
    inputs = [
        ReconcileInput(0, (UNAVAILABLE,)),
        ReconcileInput(200, (UNAVAILABLE,), spec=with_fallback(seconds=seconds)),
    ]

    *_, decision = run_reconciles(with_fallback(seconds=250), inputs, replicas=8)

    assert (decision.replicas, metrics_of(decision)) == (replicas, (status,))


def test_failure_duration_of_zero_falls_back_at_once():
    decision = decide_once(with_fallback(4, seconds=0), make_observation(UNAVAILABLE))

    assert (decision.replicas, metrics_of(decision)) == (4, (fallback_status(replicas=4),))
    assert event_messages(decision)[:2] == [FAILED, activated(4, after="0s")]


def test_longer_duration_deactivates_an_active_fallback():
    inputs = [*inputs_at((0, 180), UNAVAILABLE), ReconcileInput(195, (UNAVAILABLE,), spec=with_fallback(seconds=600))]

    *_, decision = run_reconciles(with_fallback(), inputs, replicas=8)

    assert (decision.replicas, metrics_of(decision), condition_content(decision, KIND)) == (
        10,
        (failing_status(),),
        PENDING,
    )


def test_steps_contain_the_due_time_and_the_proposal_of_a_fallback():
    waiting, active = run_reconciles(with_fallback(strategy="UseMin"), inputs_at((0, 180), UNAVAILABLE), replicas=8)

    (failed,) = [step for step in waiting.steps if isinstance(step, MetricUnavailableStep)]
    assert (failed.failing_since, failed.fallback_at, failed.fallback_replicas) == (NOW, later(180), 10)
    assert waiting.may_change_at == later(180)
    assert [step for step in active.steps if isinstance(step, MetricFallbackStep)] == [
        MetricFallbackStep("queue_depth", 8, WHY, NOW, "UseMin", 10, 8, FailureClass.REFUSED, later(180))
    ]


# --- zero ------------------------------------------------------------------------------------------------------------


def test_failing_metric_with_fallback_prevents_scale_to_zero():
    spec = make_spec(
        make_external_metric(fallback=make_fallback(1)),
        make_external_metric("backlog"),
        minimum=0,
        behavior=NO_STABILIZATION,
    )
    inputs = [
        *inputs_at((0, 180, 195), UNAVAILABLE, external_reading(0)),
        ReconcileInput(210, (external_reading(0), external_reading(0))),
    ]

    decisions = run_reconciles(spec, inputs, replicas=2)

    assert [one.replicas for one in decisions] == [2, 1, 1, 0]


@pytest.mark.parametrize("strategy", ["Static", "UseMax", "UseMin"])
def test_captured_zero_replicas_are_ignored(strategy):
    spec = with_fallback(4, strategy=strategy, minimum=0)

    *_, scaled_up, after = run_reconciles(
        spec, inputs_at((0, 180, 195), UNAVAILABLE), replicas=0, status=scaled_to_zero_status()
    )

    assert (scaled_up.replicas, metrics_of(scaled_up)) == (4, (fallback_status(replicas=4, captured=0),))
    assert (after.replicas, metrics_of(after)) == (4, (fallback_status(replicas=4, captured=0),))


def test_fallback_without_replicas_proposes_one():
    *_, active = run_reconciles(with_fallback(None), inputs_at((0, 180), UNAVAILABLE), replicas=2)

    assert metrics_of(active) == (fallback_status(replicas=1, captured=2),)


# --- with other metrics ----------------------------------------------------------------------------------------------


def test_pending_fallback_blocks_scaling_down_but_not_up():
    spec = make_spec(make_external_metric(fallback=make_fallback(4)), make_pods_metric(), behavior=NO_STABILIZATION)
    idle, busy = (pod_reading(*[milli] * 4) for milli in (5000, 20000))

    down, up = run_reconciles(
        spec, [ReconcileInput(0, (UNAVAILABLE, idle)), ReconcileInput(15, (UNAVAILABLE, busy))], replicas=4
    )

    assert (down.replicas, up.replicas) == (4, 8)
    assert [step for step in down.steps if isinstance(step, RecommendationStep)] == [
        RecommendationStep(4, 4, 2, 1, blocked=True)
    ]
    assert condition_content(up, KIND) == PENDING


def test_active_fallback_does_not_block_scale_down():
    spec = make_spec(make_external_metric(fallback=make_fallback(2)), make_pods_metric(), behavior=NO_STABILIZATION)

    *_, active = run_reconciles(spec, inputs_at((0, 180), UNAVAILABLE, pod_reading(*[5000] * 8)), replicas=8)

    assert (active.replicas, active.error) == (4, None)


def test_failure_run_of_a_removed_metric_is_dropped():
    old, new = (
        make_external_metric("old", fallback=make_fallback()),
        make_external_metric("new", fallback=make_fallback()),
    )
    inputs = [ReconcileInput(0, (UNAVAILABLE,)), ReconcileInput(15, (UNAVAILABLE,), spec=make_spec(new), replicas=150)]

    *_, clamped = run_reconciles(make_spec(old), inputs)

    assert (metrics_of(clamped), condition_content(clamped, KIND)) == (None, READABLE)


def test_transition_time_of_the_fallback_condition_changes_only_with_its_status():
    waiting, still, active = run_reconciles(with_fallback(), inputs_at((0, 15, 180), UNAVAILABLE), replicas=8)

    assert still.status.condition(KIND) == waiting.status.condition(KIND)
    assert transition_time(active, KIND) == later(180)
    assert full_condition_content(active, KIND) == (
        *fallback_active(10)[:2],
        f"{fallback_active(10)[2]}: connection refused",
    )


def test_fallback_condition_is_unknown_for_an_unavailable_target():
    known = Status(current_metrics=(failing_status(),), conditions=(make_condition(KIND, "False"),))
    decision = decide_once(
        with_fallback(),
        make_observation(UNAVAILABLE, target=UnavailableTarget("gone")),
        status=known,
        gates=FeatureGates(),
    )

    assert condition_content(decision, KIND) == (
        "Unknown",
        "FailedGetScale",
        "no metric was read, because the target's scale could not be read",
    )
    assert metrics_of(decision) == (failing_status(),)


def test_invalid_metric_selector_keeps_its_failure_run():
    bad = make_external_metric(selector={"a b": "1"}, fallback=make_fallback(10))
    status = Status(current_metrics=(failing_status(metric=identifier_of(bad)),))

    decision = decide_once(make_spec(bad), make_observation(BadSelector("bad")), status=status)

    assert metrics_of(decision) == status.current_metrics


def test_fallback_is_the_limiting_factor():
    *_, active = run_reconciles(with_fallback(), inputs_at((0, 180), UNAVAILABLE), replicas=8)

    assert active.limiting_factor is LimitingFactor.FALLBACK

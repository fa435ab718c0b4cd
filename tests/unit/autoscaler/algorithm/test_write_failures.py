"""The decision after a failed write of the scale or of the status."""

from msgspec.structs import replace

from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.explain import step_text
from autoscaler.algorithm.write_failures import (
    after_failed_rescale,
    after_failed_status_write,
    after_late_rescale,
    after_unknown_rescale,
)
from autoscaler.algorithm.zero import scaled_to_zero
from autoscaler.types.history import History, UnknownRescale
from autoscaler.types.limiting_factor import LimitingFactor
from autoscaler.types.spec import Metric
from autoscaler.types.status import Condition, Status
from autoscaler.types.steps import ResultStep, WriteFailedStep
from tests.builders import (
    ALL_GATES,
    NO_STABILIZATION,
    NOW,
    SETTINGS,
    ReconcileInput,
    ago,
    condition_reasons,
    event_messages,
    external_reading,
    inputs_at,
    later,
    make_autoscaler,
    make_condition,
    make_external_metric,
    make_observation,
    make_recommendations,
    make_scale_events,
    make_spec,
    run_reconciles,
    scaled_to_zero_status,
    settled_history,
    transition_time,
    unavailable_reading,
)

BEFORE = Status(desired_replicas=3, current_replicas=3, last_scale_time=ago(900))
HISTORY = History(make_recommendations((3, 36000)), scale_ups=make_scale_events((1, 5)))


def decided(autoscaler, reading, history=HISTORY, replicas=3):
    observation = make_observation(*reading, replicas=replicas)
    return decide(
        autoscaler=autoscaler, observation=observation, history=history, settings=SETTINGS, gates=ALL_GATES, now=NOW
    )


def test_failed_write_of_the_scale_keeps_the_recommendation_but_not_the_rescale():
    autoscaler = make_autoscaler(make_spec(behavior=NO_STABILIZATION), BEFORE)
    decision = decided(autoscaler, (external_reading(25),))

    failed = after_failed_rescale(decision, autoscaler, HISTORY, "conflict")

    assert (decision.scale_to, failed.scale_to, failed.replicas) == (5, None, 5)
    assert event_messages(failed) == [
        ("FailedRescale", "New size: 5; reason: external metric queue_depth(nil) above target; error: conflict")
    ]
    assert (failed.error, failed.failed) == ("failed to rescale Deployment/shop/web: conflict", True)
    assert (failed.status.desired_replicas, failed.status.last_scale_time) == (3, ago(900))
    assert failed.status.current_metrics == decision.status.current_metrics
    assert failed.status.condition("AbleToScale") == Condition(
        "AbleToScale",
        "False",
        NOW,
        "FailedUpdateScale",
        "the HPA controller was unable to update the target scale: conflict",
    )
    assert failed.status.condition("ScaledToZero") is None
    assert failed.history == replace(decision.history, scale_ups=HISTORY.scale_ups)
    assert failed.history.recommendations[-1].replicas == 5
    assert (failed.steps[-1], failed.limiting_factor) == (WriteFailedStep(5, "conflict"), LimitingFactor.WRITE_FAILED)
    assert not any(isinstance(step, ResultStep) for step in failed.steps)
    assert failed.status_changed


def test_failed_write_changes_the_transition_time_of_able_to_scale_in_every_reconcile():
    inputs = [ReconcileInput(after, (external_reading(25),), write_fails="conflict") for after in (0, 15)]

    first, second = run_reconciles(make_spec(), inputs)

    assert [transition_time(one, "AbleToScale") for one in (first, second)] == [NOW, later(15)]
    assert second.status_changed


def test_scaled_to_zero_condition_is_kept_if_scaling_up_from_zero_fails():
    autoscaler = make_autoscaler(make_spec(minimum=0), scaled_to_zero_status())
    decision = decided(autoscaler, (external_reading(12),), replicas=0)

    failed = after_failed_rescale(decision, autoscaler, HISTORY, "conflict")

    assert condition_reasons(decision)["ScaledToZero"] == ("False", "NotScaledToZero")
    assert failed.status.condition("ScaledToZero") == scaled_to_zero_status().conditions[0]
    assert list(condition_reasons(failed)) == ["ScaledToZero", "AbleToScale", "ScalingActive", "ScalingLimited"]


def test_failed_write_keeps_the_order_of_conditions():
    old = Status(
        conditions=(
            make_condition("ScalingLimited", "False"),
            make_condition("AbleToScale"),
            make_condition("Unknown"),
        )
    )
    autoscaler = make_autoscaler(status=old)

    failed = after_failed_rescale(decided(autoscaler, (external_reading(25),)), autoscaler, HISTORY, "conflict")

    assert list(condition_reasons(failed)) == ["ScalingLimited", "AbleToScale", "Unknown", "ScalingActive"]


def test_failed_write_of_the_status_sends_an_event_and_sets_the_error():
    decision = decided(make_autoscaler(), (external_reading(15),))

    failed = after_failed_status_write(decision, "web", "conflict")

    assert event_messages(failed) == [("FailedUpdateStatus", "conflict")]
    assert (failed.error, failed.caused_by_spec) == ("failed to update status for web: conflict", False)


def test_failed_write_of_the_status_replaces_the_error_of_a_computed_decision():
    spec = make_spec(make_external_metric("bad"), make_external_metric())
    decision = decided(make_autoscaler(spec), (unavailable_reading(), external_reading(25)))

    failed = after_failed_status_write(decision, "web", "conflict")

    assert decision.error.startswith("invalid metrics (1 invalid out of 2)")
    assert failed.error == "failed to update status for web: conflict"


def test_failed_write_of_the_status_keeps_the_error_of_a_failed_decision():
    blocked = decided(make_autoscaler(make_spec(Metric(type="Weather"))), (unavailable_reading(),))

    failed = after_failed_status_write(blocked, "web", "conflict")

    assert (failed.error, failed.caused_by_spec) == (blocked.error, True)
    assert [reason for reason, _ in event_messages(failed)] == [
        "InvalidMetricSourceType",
        "FailedUpdateStatus",
        "FailedComputeMetricsReplicas",
    ]


def test_failed_write_of_the_scale_is_retried_by_the_next_reconcile():
    inputs = [
        ReconcileInput(0, (external_reading(25),), write_fails="timeout"),
        *inputs_at((15, 30), external_reading(25)),
    ]

    failed, written, after = run_reconciles(make_spec(behavior=NO_STABILIZATION), inputs, history=settled_history(3))

    assert [one.scale_to for one in (failed, written, after)] == [None, 5, None]
    assert [len(one.history.scale_ups) for one in (failed, written, after)] == [0, 1, 1]


def unknown_rescale(before, replicas, version="7", at=NOW):
    return UnknownRescale(before, replicas, at, version, "All metrics below target")


def test_unknown_outcome_reports_nothing_as_done_and_keeps_the_rescale():
    autoscaler = make_autoscaler(make_spec(behavior=NO_STABILIZATION), BEFORE)
    decision = decided(autoscaler, (external_reading(25),))
    earlier = replace(HISTORY, unknown=(unknown_rescale(3, 5, at=ago(20)), unknown_rescale(3, 4, at=ago(40))))

    unknown = after_unknown_rescale(decision, autoscaler, earlier, unknown_rescale(3, 5), "timed out")

    assert (unknown.scale_to, unknown.status.last_scale_time, unknown.failed) == (None, ago(900), True)
    assert condition_reasons(unknown)["AbleToScale"] == ("Unknown", "RescaleOutcomeUnknown")
    assert [reason for reason, _ in event_messages(unknown)] == ["RescaleOutcomeUnknown"]
    assert unknown.steps[-1] == WriteFailedStep(5, "timed out", outcome_unknown=True)
    assert step_text(unknown.steps[-1]) == "result: write of 5 replicas to the target may have failed: timed out"
    assert unknown.history.scale_ups == HISTORY.scale_ups
    assert unknown.history.unknown == (unknown_rescale(3, 4, at=ago(40)), unknown_rescale(3, 5))
    assert unknown.error == "outcome of rescaling Deployment/shop/web is unknown: timed out"


def test_number_of_rescales_with_unknown_outcome_is_limited():
    autoscaler = make_autoscaler(make_spec(behavior=NO_STABILIZATION), BEFORE)
    decision = decided(autoscaler, (external_reading(25),))
    many = replace(HISTORY, unknown=tuple(unknown_rescale(3, 5, str(version)) for version in range(100)))
    unknown = after_unknown_rescale(decision, autoscaler, many, unknown_rescale(3, 5, "new"), "timed out")
    assert [rescale.resource_version for rescale in unknown.history.unknown] == [*map(str, range(93, 100)), "new"]


def test_scaled_to_zero_stays_while_the_outcome_of_a_scale_to_zero_or_from_zero_is_unknown():
    spec = make_spec(minimum=0, behavior=NO_STABILIZATION)
    down = make_autoscaler(spec, BEFORE)
    to_zero = decided(down, (external_reading(0),))
    assert to_zero.scale_to == 0
    unknown = after_unknown_rescale(to_zero, down, HISTORY, unknown_rescale(3, 0), "timed out")
    assert scaled_to_zero(unknown.status)

    up = make_autoscaler(spec, scaled_to_zero_status())
    from_zero = decided(up, (external_reading(25),), replicas=0)
    assert not scaled_to_zero(from_zero.status)
    unknown = after_unknown_rescale(from_zero, up, HISTORY, unknown_rescale(0, 5), "timed out")
    assert scaled_to_zero(unknown.status)

    status, event = after_late_rescale(up, unknown_rescale(0, 5, at=ago(20)))
    assert (scaled_to_zero(status), status.last_scale_time) == (False, ago(20))
    assert (event.reason, event.message) == ("SuccessfulRescale", "New size: 5; reason: All metrics below target")

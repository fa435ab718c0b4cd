"""What follows from a decision when a write it asked for did not succeed."""

from msgspec.structs import replace

from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.write_failures import after_failed_rescale, after_failed_status_write
from autoscaler.types.history import History
from autoscaler.types.limiting_factor import Bound
from autoscaler.types.spec import Metric
from autoscaler.types.status import Condition, Status
from autoscaler.types.steps import Concluded, WriteFailed
from tests.builders import (
    ALL_ON,
    AT_ONCE,
    NOW,
    SETTINGS,
    Step,
    ago,
    at_zero_by_us,
    later,
    long_at,
    make_autoscaler,
    make_condition,
    make_external_metric,
    make_observation,
    make_spec,
    passes_at,
    queue_of,
    reasons_of,
    recommended,
    rescaled,
    run_passes,
    told,
    unreadable,
)

BEFORE = Status(desired_replicas=3, current_replicas=3, last_scale_time=ago(900))
PAST = History(recommended((3, 36000)), scale_ups=rescaled((1, 5)))


def decided(autoscaler, reading, past=PAST, replicas=3):
    seen = make_observation(*reading, replicas=replicas)
    return decide(autoscaler=autoscaler, seen=seen, past=past, settings=SETTINGS, gates=ALL_ON, now=NOW)


def test_if_the_scale_cannot_be_written_the_recommendation_stands_and_the_rescale_does_not():
    autoscaler = make_autoscaler(make_spec(behavior=AT_ONCE), BEFORE)
    decision = decided(autoscaler, (queue_of(25),))

    failed = after_failed_rescale(decision, autoscaler, PAST, "conflict")

    assert (decision.scale_to, failed.scale_to, failed.replicas) == (5, None, 5)
    assert told(failed) == [
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
    assert failed.history == replace(decision.history, scale_ups=PAST.scale_ups)
    assert failed.history.recommendations[-1].replicas == 5
    assert (failed.working[-1], failed.bound) == (WriteFailed(5, "conflict"), Bound.WRITE)
    assert not any(isinstance(step, Concluded) for step in failed.working)
    assert failed.status_changed


def test_its_condition_moves_its_time_in_every_pass():
    steps = [Step(after, (queue_of(25),), write_fails="conflict") for after in (0, 15)]

    first, second = run_passes(make_spec(), steps)

    assert [one.status.condition("AbleToScale").last_transition_time for one in (first, second)] == [NOW, later(15)]
    assert second.status_changed


def test_a_zero_that_was_ours_stays_ours_if_waking_fails():
    autoscaler = make_autoscaler(make_spec(minimum=0), at_zero_by_us())
    decision = decided(autoscaler, (queue_of(12),), replicas=0)

    failed = after_failed_rescale(decision, autoscaler, PAST, "conflict")

    assert reasons_of(decision)["ScaledToZero"] == ("False", "NotScaledToZero")
    assert failed.status.condition("ScaledToZero") == at_zero_by_us().conditions[0]
    assert list(reasons_of(failed)) == ["ScaledToZero", "AbleToScale", "ScalingActive", "ScalingLimited"]


def test_conditions_keep_their_places():
    old = Status(
        conditions=(
            make_condition("ScalingLimited", "False"),
            make_condition("AbleToScale"),
            make_condition("SomeoneElses"),
        )
    )
    autoscaler = make_autoscaler(status=old)

    failed = after_failed_rescale(decided(autoscaler, (queue_of(25),)), autoscaler, PAST, "conflict")

    assert list(reasons_of(failed)) == ["ScalingLimited", "AbleToScale", "SomeoneElses", "ScalingActive"]


def test_if_the_status_cannot_be_written_that_is_told():
    decision = decided(make_autoscaler(), (queue_of(15),))

    failed = after_failed_status_write(decision, "web", "conflict")

    assert told(failed) == [("FailedUpdateStatus", "conflict")]
    assert (failed.error, failed.blames_spec) == ("failed to update status for web: conflict", False)


def test_a_status_that_cannot_be_written_replaces_the_error_of_a_pass_that_came_to_a_size():
    spec = make_spec(make_external_metric("bad"), make_external_metric())
    decision = decided(make_autoscaler(spec), (unreadable(), queue_of(25)))

    failed = after_failed_status_write(decision, "web", "conflict")

    assert decision.error.startswith("invalid metrics (1 invalid out of 2)")
    assert failed.error == "failed to update status for web: conflict"


def test_but_not_the_error_of_one_that_did_not():
    stuck = decided(make_autoscaler(make_spec(Metric(type="Weather"))), (unreadable(),))

    failed = after_failed_status_write(stuck, "web", "conflict")

    assert (failed.error, failed.blames_spec) == (stuck.error, True)
    assert [reason for reason, _ in told(failed)] == [
        "InvalidMetricSourceType",
        "FailedUpdateStatus",
        "FailedComputeMetricsReplicas",
    ]


def test_a_failed_write_is_tried_again_by_the_next_pass():
    steps = [Step(0, (queue_of(25),), write_fails="timeout"), *passes_at((15, 30), queue_of(25))]

    refused, written, after = run_passes(make_spec(behavior=AT_ONCE), steps, past=long_at(3))

    assert [one.scale_to for one in (refused, written, after)] == [None, 5, None]
    assert [len(one.history.scale_ups) for one in (refused, written, after)] == [0, 1, 1]

"""Random faults in virtual time, and the checker of the invariants: each kind of violation is reported."""

import pytest

from tests.faults.random_run.convergence import not_converged
from tests.faults.random_run.generator import generate
from tests.faults.random_run.invariants import Limits, check
from tests.faults.random_run.mutants import find_mutant
from tests.faults.random_run.outcome import Total
from tests.faults.random_run.record import LeaseWrite, Record, ScaleWrite, SpecWrite, StatusWrite, TargetWrite, Write
from tests.faults.random_run.virtual import PROFILE, run_seed

SEEDS = range(1, 8)
CHECKS = ("writer", "permission", "faulty", "without_faults", "rate")
LIMITS = Limits(stale=111, without_faults=1)


def spec(**fields):
    external = {"metric": {"name": "m0"}, "target": {"type": "AverageValue", "averageValue": "5"}}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metrics = [{"type": "External", "external": external}]
    return {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 10, "metrics": metrics, **fields}


def record(*writes, faults=((0, 2000),)):
    """Return a record with an autoscaler, its target with two replicas, and the lease of process a."""
    first: list[Write] = [SpecWrite(0, "web", "1", spec()), TargetWrite(0, "web", 2), LeaseWrite(1, "a")]
    return Record([*first, *writes], list(faults))


def violated(found):
    return [violation.invariant for violation in check(found, LIMITS).violations]


# --- runs ------------------------------------------------------------------------------------------------------------


def test_invariants_hold_in_random_runs():
    total = Total()
    for seed in SEEDS:
        total.add(run_seed(seed))
    assert total.violations == []
    assert all(total.checked[check] > 10 for check in CHECKS), total.checked
    assert len(total.faults) > 10


def test_seed_determines_the_actions():
    assert generate(7, PROFILE) == generate(7, PROFILE)
    assert generate(7, PROFILE) != generate(8, PROFILE)


@pytest.mark.parametrize(
    "name",
    ["writes without the Lease", "does not apply the bounds", "treats an unknown outcome as a failure"],
)
def test_defect_of_the_controller_is_found(name):
    """All of them are tried by ``python -m tests.faults.random_run --mutants``."""
    _, violation = find_mutant(name, range(1, 6))
    assert violation


# --- one writer ------------------------------------------------------------------------------------------------------


def test_write_of_the_holder_of_the_lease_is_no_violation():
    assert violated(record(ScaleWrite(10, "a", "web", 4), StatusWrite(10, "a", "web"))) == []


@pytest.mark.parametrize("late", [ScaleWrite(31, "a", "web", 4), StatusWrite(31, "a", "web")])
def test_write_after_another_process_acquired_the_lease_is_reported(late):
    assert violated(record(LeaseWrite(30, "b"), late)) == ["one writer"]


def test_write_after_the_lease_was_released_is_reported():
    assert violated(record(LeaseWrite(30, "a", is_released=True), ScaleWrite(30, "a", "web", 4))) == ["one writer"]


# --- permission ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [spec(mode="Paused"), spec(mode="DryRun"), None], ids=["paused", "dry run", "deleted"]
)
def test_write_for_a_paused_or_deleted_autoscaler_is_reported_after_the_bound(change):
    changed = SpecWrite(100, "web", "1", change)
    assert violated(record(changed, ScaleWrite(210, "a", "web", 4))) == []
    assert violated(record(changed, ScaleWrite(212, "a", "web", 4))) == ["deleted, paused or in conflict"]


def test_bound_is_short_without_faults():
    changed = SpecWrite(1000, "web", "1", spec(mode="Paused"))
    found = record(changed, ScaleWrite(1002, "a", "web", 4), faults=((0, 500),))
    assert violated(found) == ["deleted, paused or in conflict"]


def test_write_is_permitted_after_the_end_of_a_pause():
    changed = SpecWrite(100, "web", "1", spec(mode="Paused", pausedUntil="1970-01-01T00:10:00Z"))
    assert violated(record(changed, ScaleWrite(599, "a", "web", 4))) == ["deleted, paused or in conflict"]
    assert violated(record(changed, ScaleWrite(601, "a", "web", 4))) == []


def test_write_during_a_conflict_is_reported():
    rival = SpecWrite(100, "rival", "2", spec())
    assert violated(record(rival, ScaleWrite(212, "a", "web", 4))) == ["deleted, paused or in conflict"]


def test_write_after_a_recreation_is_permitted():
    deleted, created = SpecWrite(100, "web", "1", None), SpecWrite(300, "web", "2", spec())
    assert violated(record(deleted, created, ScaleWrite(301, "a", "web", 4))) == []


@pytest.mark.parametrize("replicas", [0, 11])
def test_write_outside_the_bounds_is_reported(replicas):
    assert violated(record(ScaleWrite(10, "a", "web", replicas))) == ["bounds"]


def test_bounds_before_an_edit_are_permitted_until_the_maximum_age():
    edited = SpecWrite(100, "web", "1", spec(maxReplicas=3))
    assert violated(record(edited, ScaleWrite(110, "a", "web", 4))) == []
    assert violated(record(edited, ScaleWrite(212, "a", "web", 4))) == ["bounds"]


# --- rates -----------------------------------------------------------------------------------------------------------


def limited(*writes, policy="Pods", value=2, direction="scaleUp"):
    """Return a record whose autoscaler has one rate policy with a period of 60 seconds."""
    policies = [{"type": policy, "value": value, "periodSeconds": 60}]
    behavior = {direction: {"policies": policies, "selectPolicy": "Max"}}
    first: list[Write] = [
        SpecWrite(0, "web", "1", spec(behavior=behavior)),
        TargetWrite(0, "web", 4),
        LeaseWrite(1, "a"),
    ]
    return Record([*first, *writes], [(0, 2000)])


def test_write_above_the_rate_is_reported():
    assert violated(limited(ScaleWrite(500, "a", "web", 6))) == []
    assert violated(limited(ScaleWrite(500, "a", "web", 7))) == ["rate"]


def test_second_step_within_the_period_is_reported_if_the_status_of_the_first_was_written():
    first, second = ScaleWrite(500, "a", "web", 6), ScaleWrite(530, "a", "web", 8)
    assert violated(limited(first, StatusWrite(500, "a", "web"), second)) == ["rate"]
    assert violated(limited(first, second)) == []
    assert violated(limited(first, StatusWrite(500, "a", "web"), ScaleWrite(561, "a", "web", 8))) == []


def test_scale_down_below_the_rate_is_reported():
    found = limited(ScaleWrite(500, "a", "web", 1), policy="Percent", value=50, direction="scaleDown")
    assert violated(found) == ["rate"]


def test_without_behavior_a_target_is_at_most_doubled():
    assert violated(record(ScaleWrite(500, "a", "web", 4))) == []
    assert violated(record(ScaleWrite(500, "a", "web", 5))) == ["rate"]


# --- convergence -----------------------------------------------------------------------------------------------------


def targets_not_converged(found, replicas, value):
    return len(not_converged(found, {"web": replicas}, {"m0": value}, 2000, LIMITS.stale))


@pytest.mark.parametrize(
    ("replicas", "value", "problems"),
    [(4, 20, 0), (4, 22, 0), (4, 23, 1), (4, 40, 1), (10, 500, 0), (1, 0, 0), (3, None, 0)],
)
def test_target_without_the_replicas_that_its_metric_demands_is_reported(replicas, value, problems):
    assert targets_not_converged(record(), replicas, value) == problems


def test_target_that_stays_at_zero_is_reported_if_the_controller_scaled_it_to_zero():
    owner = SpecWrite(5, "web", "1", spec(minReplicas=0))
    assert targets_not_converged(record(owner, ScaleWrite(500, "a", "web", 0)), 0, 20) == 1
    assert targets_not_converged(record(owner, TargetWrite(500, "web", 0)), 0, 20) == 0


def test_target_has_not_converged_before_its_pause_ends():
    paused = spec(mode="Paused", pausedUntil="1970-01-01T01:00:00Z")
    assert targets_not_converged(record(SpecWrite(5, "web", "1", paused)), 4, 20) == 1


def test_fallback_is_expected_while_a_metric_cannot_be_read():
    failing = spec()
    failing["metrics"][0]["external"]["fallback"] = {"replicas": 7}
    found = record(SpecWrite(5, "web", "1", failing))
    assert targets_not_converged(found, 7, None) == 0
    assert targets_not_converged(found, 2, None) == 1

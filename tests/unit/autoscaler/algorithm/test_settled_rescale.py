"""Statuses after a rescale that need not be written."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from autoscaler.algorithm.settled_rescale import is_settled_rescale
from autoscaler.types.status import Condition, Status

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
RESCALED = Condition("AbleToScale", "True", SINCE, "SucceededRescale", "the scale was updated to 8")
READY = Condition("AbleToScale", "True", SINCE, "ReadyForNewScale", "recommended size matches current size")
STABILIZED = Condition("AbleToScale", "True", SINCE, "ScaleDownStabilized", "recent recommendations were higher")
ACTIVE = Condition("ScalingActive", "True", SINCE, "ValidMetricFound", "")
STORED = Status(desired_replicas=8, current_replicas=8, conditions=(RESCALED, ACTIVE), state="normal")


def test_rescale_is_settled_if_nothing_else_has_changed():
    assert is_settled_rescale(replace(STORED, conditions=(READY, ACTIVE)), STORED)


@pytest.mark.parametrize(
    "status",
    [
        replace(STORED, conditions=(READY, ACTIVE), current_replicas=7),
        replace(STORED, conditions=(READY, ACTIVE), state="limited"),
        replace(STORED, conditions=(READY, replace(ACTIVE, status="False"))),
        replace(STORED, conditions=(STABILIZED, ACTIVE)),
        replace(STORED, conditions=(ACTIVE,)),
    ],
    ids=["replicas", "state", "condition", "stabilized", "no condition"],
)
def test_rescale_is_not_settled_if_the_status_says_more(status):
    assert not is_settled_rescale(status, STORED)


@pytest.mark.parametrize("conditions", [(), (STABILIZED, ACTIVE)], ids=["none", "another reason"])
def test_status_that_reports_no_rescale_is_not_settled(conditions):
    stored = replace(STORED, conditions=conditions)
    assert not is_settled_rescale(replace(STORED, conditions=(READY, ACTIVE)), stored)

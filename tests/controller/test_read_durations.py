"""The duration of each metric read in the controller's metrics."""

import asyncio

import pytest

from tests.controller.harness import queue

pytestmark = pytest.mark.looptime

DURATION = "horizontal_pod_autoscaler_controller_metric_computation_duration_seconds"


def observed(harness, error):
    labels = {"action": "none", "error": error, "metric_type": "External"}
    count, total = (harness.registry.get_sample_value(f"{DURATION}_{kind}", labels) for kind in ("count", "sum"))
    return count, total


async def test_duration_of_a_metric_is_that_of_its_own_read(harness):
    harness.external_metrics.set("fast", 15)
    harness.external_metrics.set("slow", 15)
    harness.external_metrics.set("failing", "connection refused")
    harness.external_metrics.delays.update({"slow": 3, "failing": 2})
    harness.deployment(replicas=3)
    harness.autoscaler("web", queue("fast"), queue("slow"), queue("failing"))
    harness.start()
    await asyncio.sleep(4)
    harness.edit(mode="DryRun")  # the status has the current replicas now, so the action is "none"
    first_count, first_total = observed(harness, "internal")
    await asyncio.sleep(4)

    count, total = observed(harness, "none")
    assert (first_count, round(first_total)) == (1, 2)
    assert (count, round(total)) == (2, 3)

"""Metrics, log lines and the column TARGETS of the controller."""

import asyncio
import logging

import pytest

from tests.controller.harness import queue

pytestmark = pytest.mark.looptime


async def test_conditions_and_bounds_are_states_for_the_metrics(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler(minReplicas=2)
    process = harness.start()
    await asyncio.sleep(10)

    (state,) = process.states()
    assert (state.desired, state.current, state.bounds) == (8, 4, (2, 20))
    assert ("ScalingActive", "True", "ValidMetricFound") in state.conditions
    assert ("ScalingLimited", "False", "DesiredWithinRange") in state.conditions


async def test_target_that_cannot_be_read_has_no_bounds(harness):
    harness.autoscaler()
    process = harness.start()
    await asyncio.sleep(10)

    (state,) = process.states()
    assert (state.bounds, state.conditions) == (None, (("AbleToScale", "False", "FailedGetScale"),))


async def test_status_has_the_text_of_the_targets_column(harness):
    harness.external_metrics.set("queue", 15)
    harness.external_metrics.set("backlog", "connection refused")
    harness.deployment(replicas=3)
    harness.autoscaler("web", queue(), queue("backlog"))
    harness.start()
    await asyncio.sleep(10)

    assert harness.status()["targets"] == "5/5 (avg), <unknown>/5 (avg)"


async def test_decision_is_logged_with_its_tolerance_at_debug_level(harness, caplog):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler(behavior={"scaleUp": {"tolerance": 0.05}})
    with caplog.at_level(logging.DEBUG, logger="autoscaler.controller.reporting"):
        harness.start()
        await asyncio.sleep(10)

    (record,) = [record for record in caplog.records if record.getMessage() == "decided"]
    assert (record.autoscaler, record.replicas) == ("shop/web", 8)
    assert "queue: proposes 8 replicas" in record.steps
    assert "ceil(40 / 5) = 8; ratio 2 is outside the tolerance of 0.9 to 1.05" in record.steps

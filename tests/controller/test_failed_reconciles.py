"""Unreadable persisted state, and reconciles that raise."""

import asyncio
import logging
from itertools import pairwise

import pytest

from autoscaler.algorithm import decide
from autoscaler.controller import reconcile
from tests.controller.harness import AUTOSCALERS, queue

pytestmark = pytest.mark.looptime

STATE = "v1;at=2026-01-01T00:00:00.000Z;rec={};up={};down="
UNREADABLE = [
    pytest.param(STATE.format("5@inf", ""), id="infinite age"),
    pytest.param(STATE.format("5@1e300", ""), id="huge age"),
    pytest.param(STATE.format("5@-60", ""), id="recommendation in the future"),
    pytest.param(STATE.format("-5@1", ""), id="negative replicas"),
    pytest.param(STATE.format("99999999999@1", ""), id="too many replicas"),
    pytest.param(STATE.format("", "99999999999@1"), id="too large a rescale"),
    pytest.param("v1;at=2026-01-01T00:00:00;rec=5@1;up=;down=", id="no time zone"),
    pytest.param("v1;at=0001-01-01T00:00:00Z;rec=5@10;up=;down=", id="before the first year"),
    pytest.param("v1;at=0001-01-01T00:00:00+14:00;rec=5@0;up=;down=", id="before the first year in UTC"),
    pytest.param("v9;at=2026-01-01T00:00:00Z", id="unknown version"),
    pytest.param("v1;" + "x" * 20_000, id="too long"),
    pytest.param("\u0000\u2028", id="control characters"),
]


@pytest.mark.parametrize("text", UNREADABLE)
async def test_unreadable_state_is_discarded_with_an_event_and_a_log_line(harness, caplog, text):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler()
    harness.cluster.patch(f"{AUTOSCALERS}/web/status", {"status": {"controllerState": text}})
    harness.start()
    await asyncio.sleep(10)

    assert harness.replicas() == 8
    assert harness.events().count("DiscardedControllerState") == 1
    assert [record.getMessage() for record in caplog.records].count("controller state discarded") == 1
    assert harness.status()["controllerState"].startswith("v1;at=2026-")


async def test_unreadable_state_of_a_disabled_autoscaler_is_removed(harness):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=0)
    harness.autoscaler()
    harness.cluster.patch(f"{AUTOSCALERS}/web/status", {"status": {"controllerState": "garbage"}})
    harness.start()
    await asyncio.sleep(40)

    assert "garbage" not in harness.status().get("controllerState", "")
    assert harness.events().count("DiscardedControllerState") == 1


UNREADABLE_FIELDS = [
    pytest.param({"lastScaleTime": "0000-01-01T00:00:00Z"}, id="year zero"),
    pytest.param({"lastScaleTime": "2026-01-01T00:00:00+99:99"}, id="impossible offset"),
    pytest.param({"currentMetrics": [{"type": "External", "external": {"current": {"value": "x"}}}]}, id="quantity"),
    pytest.param({"conditions": [{"type": "A", "status": "True", "lastTransitionTime": "now"}]}, id="condition"),
]
"""Values that the definition rejects; an object that was stored under an older definition can have them."""


def store_unchecked(harness, status):
    """Store a status without validation, as if under an older definition."""
    path = harness.cluster.kinds.parse(f"{AUTOSCALERS}/web")
    stored = harness.cluster.get(f"{AUTOSCALERS}/web")
    harness.cluster.storage.put(path.kind.resource, path.key, {**stored, "status": status})


@pytest.mark.parametrize("status", UNREADABLE_FIELDS)
async def test_unreadable_fields_of_the_status_do_not_stop_the_autoscaler(harness, status):
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler()
    store_unchecked(harness, status)
    harness.start()
    await asyncio.sleep(10)

    assert harness.replicas() == 8
    assert harness.events().count("DiscardedControllerState") == 1


@pytest.mark.parametrize("status", UNREADABLE_FIELDS)
async def test_unreadable_fields_of_the_status_are_removed_although_no_other_value_replaces_them(harness, status):
    harness.deployment()
    harness.autoscaler(mode="Paused")
    store_unchecked(harness, status)
    process = harness.start()
    await asyncio.sleep(10)
    assert status.items().isdisjoint(harness.status().items())

    await harness.stop(process)
    harness.start()
    await asyncio.sleep(10)
    assert harness.events().count("DiscardedControllerState") == 1


@pytest.fixture
def failures(monkeypatch):
    """Make the decisions of the autoscaler "web" raise while the list has entries."""
    errors = [RuntimeError("boom")]
    attempts = []

    def failing(*, autoscaler, now, **inputs):
        if errors and autoscaler.metadata.name == "web":
            attempts.append(now)
            raise errors[0]
        return decide.decide(autoscaler=autoscaler, now=now, **inputs)

    monkeypatch.setattr(reconcile, "decide", failing)
    return errors, attempts


@pytest.mark.usefixtures("failures")
async def test_reconcile_that_raises_sets_a_condition_and_does_not_affect_others(harness, caplog):
    harness.external_metrics.set("queue", 40)
    for name in ("web", "api"):
        harness.deployment(name, replicas=4)
        harness.autoscaler(name)
    with caplog.at_level(logging.ERROR):
        harness.start()
        await asyncio.sleep(10)

    assert harness.condition("AbleToScale") == ("False", "ReconcileFailed")
    assert harness.message("AbleToScale") == (
        "the controller failed to reconcile this autoscaler and retries with backoff: RuntimeError: boom"
    )
    assert harness.events() == ["ReconcileFailed"]
    assert "reconcile failed" in caplog.text
    assert (harness.replicas("web"), harness.replicas("api")) == (4, 8)


async def test_failing_reconcile_is_retried_with_exponential_backoff(harness, failures):
    errors, attempts = failures
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler()
    harness.start()
    for _ in range(1000):
        harness.external_metrics.set("queue", 40)  # a change of the metric does not end the backoff
        await asyncio.sleep(1)

    gaps = [round((after - before).total_seconds()) for before, after in pairwise(attempts)]
    assert gaps == [15, 30, 60, 120, 240, 300]
    assert harness.registry.get_sample_value("steadyscale_autoscaler_reconcile_failures_total") == len(attempts)

    errors.clear()
    await asyncio.sleep(300)
    assert harness.replicas() == 8
    assert harness.condition("AbleToScale") == ("True", "ReadyForNewScale")


async def test_changed_spec_ends_the_backoff(harness, failures):
    errors, _attempts = failures
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler()
    harness.start()
    await asyncio.sleep(200)
    errors.clear()
    harness.edit(maxReplicas=19)
    await asyncio.sleep(5)

    assert harness.replicas() == 8


async def test_failing_reconcile_is_reported_even_if_the_status_causes_it(harness, monkeypatch):
    """If the decision about the failure fails as well, the failure is still counted and retried later."""

    def failing(**_inputs):
        raise OverflowError("date value out of range")

    monkeypatch.setattr(reconcile, "decide", failing)
    monkeypatch.setattr(reconcile, "decide_failed_reconcile", failing)
    harness.external_metrics.set("queue", 40)
    harness.deployment(replicas=4)
    harness.autoscaler("web", queue())
    harness.start()
    await asyncio.sleep(100)

    assert harness.registry.get_sample_value("steadyscale_autoscaler_reconcile_failures_total") == 3

"""The state of an autoscaler: ``status.state`` for ``kubectl get``, an event for every change, the pause annotation."""

import asyncio
from typing import Any

import pytest

from tests.controller.harness import AUTOSCALERS, HPAS, Harness, queue

pytestmark = pytest.mark.looptime

PAUSED = "steadyscale.dev/paused"
CAUSE = "the broker is down"


def annotate(harness: Harness, value: str | None) -> None:
    harness.cluster.patch(f"{AUTOSCALERS}/web", {"metadata": {"annotations": {PAUSED: value}}})


def new_events(harness: Harness, seen: list[str]) -> list[str]:
    """Return the reasons of the events that are not in ``seen``, and add them."""
    found = harness.events()
    for reason in seen:
        found.remove(reason)
    seen += found
    return found


async def running(harness: Harness, *metrics: Any, **spec: Any) -> list[str]:
    """Start a controller with an autoscaler that needs no change; return the reasons of its events."""
    harness.external_metrics.set("queue", 15)
    harness.deployment()
    harness.autoscaler("web", *metrics, **spec)
    harness.start()
    await asyncio.sleep(20)
    return harness.events()


async def test_state_without_anything_to_report_is_normal(harness: Harness):
    assert await running(harness) == []
    assert harness.status()["state"] == "normal"


async def test_conflict_is_in_state_conditions_and_events_until_it_is_resolved(harness: Harness):
    seen = await running(harness)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    hpa = {"metadata": {"name": "other"}, "spec": {"scaleTargetRef": reference, "maxReplicas": 5}}
    harness.cluster.create(HPAS, hpa)
    await asyncio.sleep(60)

    assert new_events(harness, seen) == ["AmbiguousTarget"]
    assert harness.status()["state"] == "conflict (HorizontalPodAutoscaler/shop/other)"
    assert harness.condition("ScalingActive") == ("False", "AmbiguousTarget")
    assert harness.condition("AbleToScale") == ("False", "AmbiguousTarget")

    harness.cluster.delete(f"{HPAS}/other")
    await asyncio.sleep(60)
    assert new_events(harness, seen) == ["ConflictResolved"]
    assert harness.status()["state"] == "normal"
    assert harness.condition("ScalingActive") == ("True", "ValidMetricFound")


@pytest.mark.parametrize(
    ("spec", "state", "events"),
    [
        ({"mode": "Paused"}, "paused", ["Paused", "Resumed"]),
        ({"mode": "DryRun"}, "dry run", ["DryRun", "DryRunEnded"]),
    ],
)
async def test_change_of_the_mode_is_an_event(harness: Harness, spec: dict[str, str], state: str, events: list[str]):
    seen = await running(harness)
    harness.edit(**spec)
    await asyncio.sleep(60)
    assert (harness.status()["state"], new_events(harness, seen)) == (state, events[:1])

    harness.edit(mode="Active")
    await asyncio.sleep(60)
    assert (harness.status()["state"], new_events(harness, seen)) == ("normal", events[1:])


async def test_unchanged_state_is_written_once(harness: Harness):
    await running(harness, mode="Paused")
    before = len(harness.sent_requests("update", "status"))
    await asyncio.sleep(120)

    assert len(harness.sent_requests("update", "status")) == before


async def test_failure_of_a_metric_its_fallback_and_its_recovery_are_in_state_and_events(harness: Harness):
    seen = await running(harness, queue(fallback={"replicas": 4}))
    harness.external_metrics.set("queue", "the broker is down")
    await asyncio.sleep(60)
    assert harness.status()["state"] == "metric failing (metrics API unavailable)"
    assert new_events(harness, seen).count("FailedGetExternalMetric") == 1
    assert harness.message("ExternalMetricFallbackActive").endswith(f"not yet in fallback: {CAUSE}")

    await asyncio.sleep(180)
    assert harness.status()["state"] == "fallback (metrics API unavailable)"
    assert {"ExternalMetricFallbackActivated", "SuccessfulRescale"} <= set(new_events(harness, seen))
    assert harness.message("ExternalMetricFallbackActive").endswith(f"using 4 replicas: {CAUSE}")

    harness.external_metrics.set("queue", 20)
    await asyncio.sleep(60)
    assert harness.status()["state"] == "normal"
    assert new_events(harness, seen) == ["ExternalMetricFallbackDeactivated"]


async def test_recovery_of_a_metric_is_an_event(harness: Harness):
    seen = await running(harness)
    harness.external_metrics.set("queue", "the broker is down")
    await asyncio.sleep(20)
    assert "FailedGetExternalMetric" in new_events(harness, seen)

    harness.external_metrics.set("queue", 15)
    await asyncio.sleep(20)
    assert new_events(harness, seen) == ["MetricRecovered"]


async def test_annotation_pauses_until_it_is_removed(harness: Harness):
    seen = await running(harness)
    annotate(harness, "true")
    await asyncio.sleep(5)
    harness.external_metrics.set("queue", 30)
    await asyncio.sleep(20)
    assert (harness.replicas(), harness.status()["state"]) == (3, "paused (annotation)")
    assert new_events(harness, seen) == ["Paused"]
    assert "until the annotation steadyscale.dev/paused is removed" in harness.message("AbleToScale")

    annotate(harness, None)
    await asyncio.sleep(5)
    assert harness.replicas() == 6
    assert set(new_events(harness, seen)) == {"Resumed", "SuccessfulRescale"}


@pytest.mark.parametrize(
    ("mode", "value", "state"),
    [
        ("DryRun", "true", "paused (annotation)"),
        ("Paused", "false", "paused"),
        ("Active", "false", "normal"),
        ("Active", "yes", 'paused (annotation must be "true" or "false")'),
    ],
)
async def test_annotation_takes_precedence_over_the_mode(harness: Harness, mode: str, value: str, state: str):
    await running(harness, mode=mode)
    annotate(harness, value)
    await asyncio.sleep(20)

    assert harness.status()["state"] == state


async def test_pause_is_reported_once_although_the_target_is_unavailable_meanwhile(harness: Harness):
    seen = await running(harness, mode="Paused")
    assert seen == ["Paused"]
    harness.cluster.faults.fail_next(500, times=8, within="deployments/web/scale")
    harness.cluster.delete("/apis/apps/v1/namespaces/shop/deployments/web")
    await asyncio.sleep(60)
    assert harness.status()["state"] == "target unavailable, paused"

    harness.deployment()
    await asyncio.sleep(60)
    assert harness.status()["state"] == "paused"
    assert set(new_events(harness, seen)) == {"FailedGetScale"}


@pytest.mark.parametrize("fallback", [None, {"replicas": 3}])
async def test_failure_with_a_text_that_differs_in_every_reconcile_is_written_seldom(
    harness: Harness, fallback: dict[str, int] | None
):
    await running(harness, queue(fallback=fallback))
    before = len(harness.sent_requests("update", "status"))
    for attempt in range(480):
        harness.external_metrics.values["queue"] = f"connect from port {40_000 + attempt}: no response in 0.{attempt} s"
        await asyncio.sleep(15)

    assert harness.external_metrics.reads > 400
    assert len(harness.sent_requests("update", "status")) - before < 40
    assert "no response" in harness.message("ExternalMetricFallbackActive" if fallback else "ScalingActive")

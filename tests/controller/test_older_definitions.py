"""Objects that a real API server stored before the definition of PodAutoscaler became stricter."""

import asyncio
import copy
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from adapter.fakecluster.api_errors import ApiError
from tests.control_plane.cluster import ControlPlane
from tests.controller.harness import AUTOSCALERS, Harness, definition, harness_on_control_plane

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podautoscalers.steadyscale.dev"
OLD = {"lastScaleTime": "0000-01-01T00:00:00Z", "conditions": [{"type": "A", "status": "True", "reason": 3}]}


def older_versions() -> list[dict[str, Any]]:
    """Return the versions of a definition that accepts any status."""
    versions: list[dict[str, Any]] = copy.deepcopy(definition()["spec"]["versions"])
    properties = versions[0]["schema"]["openAPIV3Schema"]["properties"]
    properties["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return versions


def write_status(harness: Harness, status: dict[str, Any]) -> str:
    """Write a status; return the error, or an empty text."""
    try:
        harness.cluster.patch(f"{AUTOSCALERS}/web/status", {"status": status})
    except ApiError as error:
        return str(error)
    return ""


def until(is_done: Callable[[], bool]) -> None:
    """Wait until the API server uses a new definition, for which it has no event."""
    deadline = time.monotonic() + 60
    while not is_done():
        assert time.monotonic() < deadline, "the API server does not use the definition"
        time.sleep(0.1)


def store_old_object(harness: Harness) -> None:
    """Create an autoscaler whose status the current definition rejects."""
    harness.autoscaler()
    harness.cluster.patch(DEFINITION, {"spec": {"versions": older_versions()}})
    try:
        until(lambda: write_status(harness, OLD) == "")
    finally:
        harness.cluster.patch(DEFINITION, {"spec": {"versions": definition()["spec"]["versions"]}})
    attempts = count()  # a repeated value would be unchanged, and therefore tolerated
    until(lambda: "lastScaleTime" in write_status(harness, {"lastScaleTime": f"yesterday {next(attempts)}"}))


@pytest.mark.apiserver
async def test_object_stored_before_a_stricter_definition_is_edited_and_gets_a_valid_status(
    isolated_plane: ControlPlane,
):
    """The API server tolerates invalid fields that a write does not change; the controller replaces or removes them."""
    async with harness_on_control_plane(isolated_plane) as harness:
        harness.deployment()
        store_old_object(harness)
        harness.edit(maxReplicas=19)
        assert harness.status()["conditions"] == OLD["conditions"]

        harness.external_metrics.set("queue", 15)
        harness.start()
        await asyncio.sleep(10)
        assert "lastScaleTime" not in harness.status()
        assert harness.condition("ScalingActive") == ("True", "ValidMetricFound")
        assert harness.status()["reference"] == "Deployment/web"

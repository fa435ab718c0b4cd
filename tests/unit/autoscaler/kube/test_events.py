"""Delivery of events whose responses are lost."""

import asyncio
from datetime import UTC, datetime

import pytest

from autoscaler.kube.events import EventRecorder
from autoscaler.types.decision import Event
from tests.contract.objects import autoscaler_of
from tests.fakes.cluster import Cluster
from tests.fakes.fault_injection import LostResponse

pytestmark = pytest.mark.looptime

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEB = autoscaler_of("Deployment", "web")


@pytest.mark.parametrize("verb", ["create", "patch"])
async def test_event_is_recorded_once_although_a_response_was_lost(verb: str) -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        recorder = EventRecorder(client, lambda: NOW)
        cluster.faults.lost_responses.append(
            LostResponse("create", "/events", delay=15.0) if verb == "create" else LostResponse("patch", "", delay=15.0)
        )
        running = asyncio.create_task(recorder.run())
        for _ in range(2):
            recorder.record(WEB, Event("Normal", "SuccessfulRescale", "New size: 4"))
        await recorder.flush()
        running.cancel()
        namespace = WEB.metadata.namespace
        (event,) = cluster.list(f"/api/v1/namespaces/{namespace}/events")
        assert event["count"] == 2

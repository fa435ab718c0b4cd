"""Events that are not delivered are counted by reason and logged, once a minute."""

import asyncio
import logging
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from autoscaler.kube.client import KubeClient
from autoscaler.kube.events import EventRecorder
from autoscaler.kube.metrics import KubeMetrics
from autoscaler.types.decision import Event
from tests.contract.objects import autoscaler_of
from tests.fakes.cluster import Cluster

pytestmark = pytest.mark.looptime

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEB = autoscaler_of("Deployment", "web")


def rescaled(size: int) -> Event:
    return Event("Normal", "SuccessfulRescale", f"New size: {size}")


async def dropped(cluster: Cluster, *events: Event, autoscalers: int = 1) -> dict[str, float]:
    """Record events for some autoscalers; return the number of dropped ones by reason."""
    registry = CollectorRegistry()
    async with KubeClient.open(cluster.connection, KubeMetrics(registry)) as client:
        recorder = EventRecorder(client, lambda: NOW)
        for number in range(autoscalers):
            metadata = replace(WEB.metadata, name=f"web-{number}", uid=str(number))
            for event in events:
                recorder.record(replace(WEB, metadata=metadata), event)
        running = asyncio.create_task(recorder.run())
        await recorder.flush()
        running.cancel()
    samples = [sample for metric in registry.collect() for sample in metric.samples]
    name = "steadyscale_autoscaler_events_dropped_total"
    return {sample.labels["reason"]: sample.value for sample in samples if sample.name == name}


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, int]]:
    return [vars(record)["dropped"] for record in caplog.records if record.getMessage() == "events dropped"]


async def test_delivered_events_are_not_counted() -> None:
    async with Cluster.serving() as cluster:
        assert await dropped(cluster, rescaled(4), rescaled(5), autoscalers=20) == {}


async def test_events_beyond_the_queue_are_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with Cluster.serving() as cluster:
        assert await dropped(cluster, rescaled(4), autoscalers=2000) == {"queue_full": 1000}
    assert len(logged(caplog)) == 1


async def test_events_beyond_the_rate_limit_are_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with Cluster.serving() as cluster:
        assert await dropped(cluster, *map(rescaled, range(40))) == {"rate_limited": 15}
    assert logged(caplog) == [{"rate_limited": 1}]


async def test_events_that_the_api_server_rejects_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with Cluster.serving() as cluster:
        cluster.faults.fail_next(403, times=1, within="/events")
        assert await dropped(cluster, rescaled(4)) == {"rejected": 1}
        cluster.faults.fail_next(503, times=12, within="/events")
        assert await dropped(cluster, rescaled(4)) == {"unreachable": 1}


async def test_number_of_dropped_events_is_logged_every_minute(caplog: pytest.LogCaptureFixture) -> None:
    async with Cluster.serving() as cluster, cluster.client() as client:
        recorder = EventRecorder(client, lambda: NOW)
        for _ in range(1000 + 150):  # the queue is not emptied
            recorder.record(WEB, rescaled(4))
        await asyncio.sleep(61)
        recorder.record(WEB, rescaled(4))

    assert logged(caplog) == [{"queue_full": 1}, {"queue_full": 150}]

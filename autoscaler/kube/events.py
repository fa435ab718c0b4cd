"""Records Kubernetes Events of autoscalers: correlates them as client-go does and sends them in the background.

Recording never blocks and never fails; an event that cannot be delivered is dropped, counted by reason, and reported in
the log once a minute. The events are of core/v1, which `kubectl describe` shows.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

import msgspec

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import AlreadyExists, KubeError, NotFound, TooManyRequests, Unavailable
from autoscaler.kube.event_correlation import EventCorrelator, InvolvedObject, RecordedEvent
from autoscaler.kube.paths import api_path
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Event
from autoscaler.values.timestamps import format_rfc3339

log = logging.getLogger(__name__)

COMPONENT: Final = "steadyscale"
_API_VERSION: Final = "steadyscale.dev/v1beta1"
_KIND: Final = "PodAutoscaler"
_MAX_QUEUED: Final = 1000
_MAX_ATTEMPTS: Final = 12
_LOG_SECONDS: Final = 60.0
_RETRY_INTERVAL: Final = timedelta(seconds=10)


class DroppedEvents:
    """Counts the events that are not delivered, and logs their numbers since the last log line, once a minute."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._counts: Counter[str] = Counter()
        self._logged_at = float("-inf")

    def add(self, reason: str) -> None:
        self._client.metrics.events_dropped.labels(reason).inc()
        self._counts[reason] += 1
        now = self._client.now()
        if now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            log.warning("events dropped", extra={"dropped": dict(self._counts)})
            self._counts.clear()


class EventRecorder:
    """Queues events and sends them while `run` is running."""

    def __init__(self, client: KubeClient, clock: Callable[[], datetime], *, instance: str = "") -> None:
        self._client = client
        self._clock = clock
        self._instance = instance
        self._correlator = EventCorrelator()
        self._queue: asyncio.Queue[tuple[InvolvedObject, Event]] = asyncio.Queue(_MAX_QUEUED)
        self._dropped = DroppedEvents(client)

    def record(self, autoscaler: Autoscaler, event: Event) -> None:
        """Queue an event; drop it if the queue is full."""
        metadata = autoscaler.metadata
        involved = InvolvedObject(
            _API_VERSION, _KIND, metadata.namespace, metadata.name, metadata.uid, metadata.resource_version
        )
        try:
            self._queue.put_nowait((involved, event))
        except asyncio.QueueFull:
            self._dropped.add("queue_full")

    async def run(self) -> None:
        while True:
            involved, event = await self._queue.get()
            recorded = self._correlator.correlate(involved, event, self._clock())
            if recorded is not None:
                await self._deliver(recorded)
            else:
                self._dropped.add("rate_limited")
            self._queue.task_done()

    async def flush(self) -> None:
        """Wait until all queued events are sent or dropped."""
        await self._queue.join()

    async def _deliver(self, recorded: RecordedEvent) -> None:
        name = _new_name(recorded)  # the same in all attempts: an attempt without a response may have created the event
        for attempt in range(_MAX_ATTEMPTS):
            try:
                await self._send(recorded, name)
            except (Unavailable, TooManyRequests):
                if attempt + 1 < _MAX_ATTEMPTS:
                    jitter = random.uniform(0.75, 1.25)  # noqa: S311 - spreads load, not security
                    await asyncio.sleep(_RETRY_INTERVAL.total_seconds() * jitter)
            except KubeError as error:
                log.debug("event rejected", extra={"error": str(error)})
                self._dropped.add("rejected")
                return
            else:
                return
        self._dropped.add("unreachable")

    async def _send(self, recorded: RecordedEvent, new_name: str) -> None:
        collection = api_path("api", "v1", "namespaces", recorded.involved.namespace, "events")
        if recorded.name:
            patch = {
                "count": recorded.count,
                "lastTimestamp": format_rfc3339(recorded.last),
                "message": recorded.event.message,
            }
            try:
                await self._client.patch(f"{collection}{api_path(recorded.name)}", patch)
            except NotFound:
                recorded.name = ""  # the API server deletes events after an hour
                recorded.first, recorded.count = recorded.last, 1
            else:
                return
        with suppress(AlreadyExists):
            await self._client.create(collection, self._body(recorded, new_name))
        recorded.name = new_name

    def _body(self, recorded: RecordedEvent, name: str) -> Json:
        involved, event = recorded.involved, recorded.event
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": involved.namespace},
            "involvedObject": msgspec.to_builtins(involved),
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "source": {"component": COMPONENT},
            "firstTimestamp": format_rfc3339(recorded.first),
            "lastTimestamp": format_rfc3339(recorded.last),
            "count": recorded.count,
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
        }


def _new_name(recorded: RecordedEvent) -> str:
    nanoseconds = int(recorded.last.timestamp() * 1_000_000) * 1000 + random.randrange(1000)  # noqa: S311 - a name suffix
    return f"{recorded.involved.name}.{nanoseconds:x}"

"""Records Kubernetes Events of autoscalers: correlates them as client-go does and sends them in the background.

Recording never blocks and never fails; an event that cannot be delivered is dropped and counted. The events are of
core/v1, which `kubectl describe` shows.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError, NotFound, TooManyRequests, Unavailable
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
_RETRY_INTERVAL: Final = timedelta(seconds=10)


class EventRecorder:
    """Queues events and sends them while `run` is running."""

    def __init__(self, client: KubeClient, clock: Callable[[], datetime], *, instance: str = "") -> None:
        self._client = client
        self._clock = clock
        self._instance = instance
        self._correlator = EventCorrelator()
        self._queue: asyncio.Queue[tuple[InvolvedObject, Event]] = asyncio.Queue(_MAX_QUEUED)
        self.dropped = 0
        """Number of events dropped because the queue was full or the API server did not accept them."""

    def record(self, autoscaler: Autoscaler, event: Event) -> None:
        """Queue an event; drop it if the queue is full."""
        metadata = autoscaler.metadata
        involved = InvolvedObject(
            _API_VERSION, _KIND, metadata.namespace, metadata.name, metadata.uid, metadata.resource_version
        )
        try:
            self._queue.put_nowait((involved, event))
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        while True:
            involved, event = await self._queue.get()
            recorded = self._correlator.correlate(involved, event, self._clock())
            if recorded is not None:
                await self._deliver(recorded)
            self._queue.task_done()

    async def flush(self) -> None:
        """Wait until all queued events are sent or dropped."""
        await self._queue.join()

    async def _deliver(self, recorded: RecordedEvent) -> None:
        for attempt in range(_MAX_ATTEMPTS):
            try:
                await self._send(recorded)
            except (Unavailable, TooManyRequests):
                if attempt + 1 < _MAX_ATTEMPTS:
                    jitter = random.uniform(0.75, 1.25)  # noqa: S311 - spreads load, not security
                    await asyncio.sleep(_RETRY_INTERVAL.total_seconds() * jitter)
            except KubeError as error:
                log.debug("event rejected", extra={"error": str(error)})
                break
            else:
                return
        self.dropped += 1

    async def _send(self, recorded: RecordedEvent) -> None:
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
        body = self._body(recorded)
        await self._client.create(collection, body)
        recorded.name = body["metadata"]["name"]

    def _body(self, recorded: RecordedEvent) -> Json:
        involved, event = recorded.involved, recorded.event
        nanoseconds = int(recorded.last.timestamp() * 1_000_000) * 1000 + random.randrange(1000)  # noqa: S311 - a name suffix
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{involved.name}.{nanoseconds:x}", "namespace": involved.namespace},
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

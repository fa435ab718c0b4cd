"""Kubernetes Events about autoscalers: repeated ones counted, floods held back, sent in the background.

Recording never waits and never fails; what cannot be delivered is dropped, as events are everywhere. They are core/v1
events, which `kubectl describe` shows.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError, NotFound, TooManyRequests, Unavailable
from autoscaler.kube.event_correlation import Correlator, Involved, Occurrence
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Event
from autoscaler.types.record import Record
from autoscaler.wire import print_time

log = logging.getLogger(__name__)

COMPONENT: Final = "steadyscale"
_MOST_WAITING: Final = 1000
_MOST_TRIES: Final = 12
_BETWEEN_TRIES: Final = timedelta(seconds=10)


class AboutKind(Record):
    """The kind of object that events are about."""

    api_version: str
    kind: str


POD_AUTOSCALERS: Final = AboutKind("steadyscale.dev/v1beta1", "PodAutoscaler")
NATIVE: Final = AboutKind("autoscaling/v2", "HorizontalPodAutoscaler")


class EventRecorder:
    """Takes events from whoever has some; run it beside them."""

    def __init__(
        self,
        client: KubeClient,
        clock: Callable[[], datetime],
        *,
        instance: str = "",
        about: AboutKind = POD_AUTOSCALERS,
    ) -> None:
        self._client = client
        self._clock = clock
        self._instance = instance
        self._about = about
        self._correlator = Correlator()
        self._waiting: asyncio.Queue[tuple[Involved, Event]] = asyncio.Queue(_MOST_WAITING)
        self.dropped = 0
        """How many were never sent because too many were waiting or nobody would take them."""

    def tell(self, about: Autoscaler, event: Event) -> None:
        """Send an event as soon as may be; returns at once."""
        data, kind = about.metadata, self._about
        involved = Involved(kind.api_version, kind.kind, data.namespace, data.name, data.uid, data.resource_version)
        try:
            self._waiting.put_nowait((involved, event))
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Send what was recorded, until cancelled."""
        while True:
            about, event = await self._waiting.get()
            occurrence = self._correlator.hear(about, event, self._clock())
            if occurrence is not None:
                await self._deliver(occurrence)
            self._waiting.task_done()

    async def flush(self) -> None:
        """Wait until everything recorded so far was sent or dropped."""
        await self._waiting.join()

    async def _deliver(self, occurrence: Occurrence) -> None:
        for attempt in range(_MOST_TRIES):
            try:
                await self._send(occurrence)
            except (Unavailable, TooManyRequests):
                if attempt + 1 < _MOST_TRIES:
                    spread = random.uniform(0.75, 1.25)  # noqa: S311 - spreads load, guards nothing
                    await asyncio.sleep(_BETWEEN_TRIES.total_seconds() * spread)
            except KubeError as error:
                log.debug("an event was refused", extra={"error": str(error)})
                break
            else:
                return
        self.dropped += 1

    async def _send(self, occurrence: Occurrence) -> None:
        collection = f"/api/v1/namespaces/{occurrence.involved.namespace}/events"
        if occurrence.name:
            again = {
                "count": occurrence.count,
                "lastTimestamp": print_time(occurrence.last),
                "message": occurrence.event.message,
            }
            try:
                await self._client.patch(f"{collection}/{occurrence.name}", again)
            except NotFound:
                occurrence.name = ""  # the server forgets events after an hour
                occurrence.first, occurrence.count = occurrence.last, 1
            else:
                return
        created = await self._client.create(collection, self._body(occurrence))
        occurrence.name = created["metadata"]["name"]

    def _body(self, occurrence: Occurrence) -> Json:
        about, event = occurrence.involved, occurrence.event
        nanoseconds = int(occurrence.last.timestamp() * 1_000_000) * 1000 + random.randrange(1000)  # noqa: S311 - a name
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name}.{nanoseconds:x}", "namespace": about.namespace},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
                "resourceVersion": about.resource_version,
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "source": {"component": COMPONENT},
            "firstTimestamp": print_time(occurrence.first),
            "lastTimestamp": print_time(occurrence.last),
            "count": occurrence.count,
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
        }

"""The composition of the decision history of one process: recorder, writer and reader."""

import uuid
from typing import Final

from prometheus_client import CollectorRegistry

from adapter.config.model import DecisionHistory
from adapter.history.reader import HistoryReader
from adapter.history.recorder import DecisionRecorder, NamespaceShares
from adapter.history.store import SegmentStore
from adapter.history.write_buffer import WriteBuffer
from adapter.history.writer import HistoryMetrics, HistoryWriter
from autoscaler.kube.client import KubeClient
from autoscaler.ports import Clock

_MIN_DAYS: Final = 2
"""Days of history that remain, whatever is recorded: the records of one day may use this part of ``maxBytes``."""


class DecisionHistoryService:
    """The decision history: what this process records, and what all processes have recorded."""

    def __init__(
        self,
        kube: KubeClient,
        namespace: str,
        settings: DecisionHistory,
        clock: Clock,
        identity: str,
        registry: CollectorRegistry | None = None,
    ) -> None:
        """Create the parts; ``identity`` is that of this process in the Lease."""
        self.is_enabled = settings.enabled
        buffer, store = (
            WriteBuffer(lambda: f"{clock():%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}"),
            SegmentStore(kube, namespace),
        )
        shares = NamespaceShares(settings.max_bytes // _MIN_DAYS)
        self.recorder = DecisionRecorder(buffer, shares, clock, identity)
        self.listeners = (self.recorder,) if settings.enabled else ()
        self.writer = HistoryWriter(buffer, self.recorder, store, settings, clock, HistoryMetrics(registry))
        self.reader = HistoryReader(store, buffer, clock)

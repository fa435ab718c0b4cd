"""The decision history of the sample decisions, in memory."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import cast

from adapter.config.model import DecisionHistory
from adapter.debug.decision_log import DecisionLog
from adapter.history.service import DecisionHistoryService
from autoscaler.kube.client import KubeClient
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from tests.builders import NOW


class EmptyStore:
    """A Kubernetes client that finds no stored segments."""

    async def get_bytes(self, _path: str, _query: Mapping[str, str], accept: str) -> bytes:
        assert "PartialObjectMetadataList" in accept
        return b'{"items": []}'


def recorded_history(clock: Callable[[], datetime]) -> DecisionHistoryService:
    """Return a history with a term that begins before the first sample decision."""
    kube = cast("KubeClient", EmptyStore())
    history = DecisionHistoryService(kube, "steadyscale", DecisionHistory(), clock, "steadyscale-7d4f_1_ab12")
    history.recorder._buffer.begin_term("steadyscale-7d4f", NOW)
    return history


class RecordedLog(DecisionLog):
    """A decision log whose decisions are also recorded in the history."""

    def __init__(self, history: DecisionHistoryService) -> None:
        super().__init__()
        self._history = history

    def on_decision(self, key: str, autoscaler: Autoscaler, decision: Decision) -> None:
        super().on_decision(key, autoscaler, decision)
        self._history.recorder.on_decision(key, autoscaler, decision)

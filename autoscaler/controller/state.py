"""Controller state: what the controller keeps about each autoscaler between reconciles."""

from dataclasses import dataclass, field
from datetime import datetime

from autoscaler.controller.persistence import Fingerprint
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.status import Status


@dataclass(slots=True)
class ReconcileState:
    """The state of one autoscaler between reconciles."""

    uid: str
    """The uid of the object; a recreated object of the same name has another one."""

    history: History = field(default_factory=History)
    decision: Decision | None = None
    """The last decision."""

    persisted: Fingerprint | None = None
    """The fingerprint of the history that is stored in the status; the history is written only if it changed."""

    pending_status: Status | None = None
    """A status that could not be written yet; the next reconcile continues from it."""

    failed_status_writes: int = 0
    """Number of failed status writes in a row."""

    rescaled_at: datetime | None = None
    """When this process last wrote the target's scale."""


class ControllerState(dict[str, ReconcileState]):
    """The state of all autoscalers, by key."""

    def for_object(self, key: str, uid: str) -> ReconcileState | None:
        """Return the state of the object with this uid; None before its first reconcile."""
        state = self.get(key)
        return state if state is not None and state.uid == uid else None

    def decisions(self) -> dict[str, Decision]:
        """Return the last decision of each autoscaler."""
        return {key: state.decision for key, state in self.items() if state.decision is not None}

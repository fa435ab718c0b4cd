"""Controller state: what the controller keeps about each autoscaler between reconciles."""

from collections.abc import ItemsView
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


class ControllerState:
    """The state of all autoscalers, by key."""

    def __init__(self) -> None:
        self._states: dict[str, ReconcileState] = {}

    def for_object(self, key: str, uid: str) -> ReconcileState | None:
        """Return the state of the object with this uid; None before its first reconcile."""
        state = self._states.get(key)
        return state if state is not None and state.uid == uid else None

    def get(self, key: str) -> ReconcileState | None:
        """Return the state of a key, whatever its uid."""
        return self._states.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._states

    def add(self, key: str, state: ReconcileState) -> ReconcileState:
        """Set and return the state of a key."""
        self._states[key] = state
        return state

    def remove(self, key: str) -> None:
        """Remove the state of a deleted autoscaler."""
        self._states.pop(key, None)

    def items(self) -> ItemsView[str, ReconcileState]:
        """Return all keys and states."""
        return self._states.items()

    def decisions(self) -> dict[str, Decision]:
        """Return the last decision of each autoscaler."""
        return {key: state.decision for key, state in self._states.items() if state.decision is not None}

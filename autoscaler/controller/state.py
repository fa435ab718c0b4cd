"""Controller state: what the controller keeps about each autoscaler between reconciles."""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from autoscaler.controller.persistence import Fingerprint
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.status import Status

MAX_TEXT_WRITES: Final = 5
_TEXT_INTERVAL: Final = timedelta(minutes=30)


@dataclass(slots=True)
class ReconcileState:
    """The state of one autoscaler between reconciles."""

    uid: str
    """The uid of the object; a recreated object of the same name has another one."""

    restored_at: datetime
    """When this process read the persisted history; an earlier leader has written nothing since."""

    history: History = field(default_factory=History)
    decision: Decision | None = None
    """The last decision."""

    persisted: Fingerprint | None = None
    """The fingerprint of the history that is stored in the status; the history is written only if it changed."""

    pending_status: Status | None = None
    """A status that could not be written yet; the next reconcile continues from it."""

    failed_status_writes: int = 0
    """Number of failed status writes in a row."""

    text_writes: deque[datetime] = field(default_factory=lambda: deque(maxlen=MAX_TEXT_WRITES))
    """Times of the last status writes that only changed the text of a failure."""

    rescaled_at: datetime | None = None
    """When this process last wrote the target's scale, or may have written it."""

    def allow_text_write(self, now: datetime) -> bool:
        """Count a status write that only changes the text of a failure; return False if there were too many.

        Upstream writes every text, and the first ones are written at once, too. Errors whose text differs in every
        reconcile would otherwise cause a write in every reconcile of every autoscaler during an outage.
        """
        if len(self.text_writes) == MAX_TEXT_WRITES and now - self.text_writes[0] < _TEXT_INTERVAL:
            return False
        self.text_writes.append(now)
        return True


class ControllerState(dict[str, ReconcileState]):
    """The state of all autoscalers, by key."""

    def for_object(self, key: str, uid: str) -> ReconcileState | None:
        """Return the state of the object with this uid; None before its first reconcile."""
        state = self.get(key)
        return state if state is not None and state.uid == uid else None

    def decisions(self) -> dict[str, Decision]:
        """Return the last decision of each autoscaler."""
        return {key: state.decision for key, state in self.items() if state.decision is not None}

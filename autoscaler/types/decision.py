"""What we conclude: the replicas, whether to write them, what to say of it, and how it came about."""

from datetime import datetime

from autoscaler.types.history import History
from autoscaler.types.limiting_factor import Bound, bound_by, next_change
from autoscaler.types.record import Record
from autoscaler.types.status import Status
from autoscaler.types.steps import Step


class Event(Record):
    """A Kubernetes event about the autoscaler."""

    type: str
    reason: str
    message: str


class Decision(Record):
    """What one pass concludes, as if the write it asks for will succeed.

    ``algorithm.outcome`` tells what follows if it does not.
    """

    at: datetime
    replicas: int
    """How many replicas there should be after this pass."""

    scale_to: int | None
    """What to write to the target's scale; None: nothing to write."""

    status: Status
    status_changed: bool
    """Whether the status says anything new; if not, nothing need be written."""

    history: History
    working: tuple[Step, ...]
    events: tuple[Event, ...] = ()
    late_events: tuple[Event, ...] = ()
    """Events that upstream sends after it has written the status."""

    rescale_reason: str = ""
    error: str | None = None
    """What went wrong in this pass, as upstream's log tells it; there may be one although something was scaled."""

    failed: bool = False
    """Whether that kept the pass from coming to a size at all."""

    blames_spec: bool = False
    """Whether that error is the user's."""

    @property
    def bound(self) -> Bound:
        """The one constraint that decided."""
        return bound_by(self.working)

    @property
    def may_change_at(self) -> datetime | None:
        """When the answer may change by itself, the metrics being as they are; None: when something else changes."""
        return next_change(self.working, self.at)

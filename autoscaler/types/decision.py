"""The result of one reconcile: replicas, status, events, updated history, and the steps that led to it."""

from datetime import datetime

from autoscaler.types.history import History
from autoscaler.types.limiting_factor import LimitingFactor, limiting_factor, next_change
from autoscaler.types.record import Record
from autoscaler.types.status import Status
from autoscaler.types.steps import Step


class Event(Record):
    """A Kubernetes event about the autoscaler."""

    type: str
    reason: str
    message: str


class Decision(Record):
    """The result of one reconcile, assuming that the write of the scale succeeds.

    ``algorithm.write_failures`` derives the decision for a failed write.
    """

    at: datetime
    replicas: int
    scale_to: int | None
    """Replica count to write to the scale subresource; None: no write."""

    status: Status
    status_changed: bool
    """Whether the status differs from the stored one and must be written."""

    history: History
    steps: tuple[Step, ...]
    events: tuple[Event, ...] = ()
    late_events: tuple[Event, ...] = ()
    """Events that are sent after the status write, as upstream does."""

    rescale_reason: str = ""
    error: str | None = None
    """The error of this reconcile, worded as in upstream's log. It can be set although the target was scaled."""

    failed: bool = False
    """Whether the error prevented a replica count from being computed."""

    caused_by_spec: bool = False
    """Whether the error is a mistake in the spec."""

    @property
    def limiting_factor(self) -> LimitingFactor:
        """The constraint that determined the result."""
        return limiting_factor(self.steps)

    @property
    def may_change_at(self) -> datetime | None:
        """The earliest time at which the result can change with unchanged metrics; None: no such time."""
        return next_change(self.steps, self.at)

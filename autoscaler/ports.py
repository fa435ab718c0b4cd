"""What the controller needs from outside and does not care who gives: external metrics, the time, and who listens.

The adapter's reader fits (the two halves in one process, no request between them), and so does whichever server the
cluster has registered for external metrics. Neither needs to import this; it is enough to have the shape.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, TypeAlias

from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.observation import ExternalReading, UnavailableReading
from autoscaler.types.record import Record
from autoscaler.values.selector import Selector

Clock: TypeAlias = Callable[[], datetime]
"""Tells the time, in UTC. A pass looks once."""


class MetricChange(Record):
    """A metric may read differently from now on: it was read anew, it failed, it recovered, its rule was edited."""

    metric: str
    namespace: str | None = None
    """Where; None: in every namespace."""


Unsubscribe: TypeAlias = Callable[[], None]


class ExternalMetrics(Protocol):
    """Reads metrics that belong to no Kubernetes object."""

    async def read(self, namespace: str, metric: str, selector: Selector) -> ExternalReading | UnavailableReading:
        """Say what the metric is now, or why that cannot be told; never raise for the metric system's sake.

        Who has the answer in memory gives it without waiting. How long an answer may take is the caller's business:
        a call that takes too long is cancelled.
        """

    def subscribe(self, changed: Callable[[MetricChange], None]) -> Unsubscribe:
        """Call ``changed`` on this event loop whenever a metric may read differently, until unsubscribed.

        It returns at once. Who cannot know of changes never calls; the controller comes back every period anyway.
        """


class DecisionListener(Protocol):
    """Who is told of every decision, such as a page that shows them. It returns at once and never raises."""

    def decided(self, key: str, autoscaler: Autoscaler, decision: Decision) -> None:
        """Hear what a pass over an autoscaler came to, once it is carried out."""

    def gone(self, key: str) -> None:
        """Hear that there is no such autoscaler any more."""

    def dismissed(self) -> None:
        """Hear that another process decides from now on."""

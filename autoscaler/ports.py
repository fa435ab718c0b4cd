"""Interfaces that the controller requires from its environment: clock, external metrics and decision listeners.

The adapter's reader implements `ExternalMetricsSource` in the same process. Implementations need not import this
module; the interfaces are protocols.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from autoscaler.sharding.held_shards import HeldShards
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.observation import ExternalReading, UnavailableReading
from autoscaler.types.record import Record
from autoscaler.values.requirement import Labels
from autoscaler.values.selector import Selector

Clock: TypeAlias = Callable[[], datetime]
"""Returns the current time in UTC; called once per reconcile."""


class MetricChange(Record):
    """A notification that the value of a metric may have changed: new value, failure, recovery or changed rule."""

    metric: str
    namespace: str | None = None
    """The namespace; None means all namespaces."""

    series: tuple[Labels, ...] | None = None
    """The labels of the changed series; None means that any series may have changed."""


Unsubscribe: TypeAlias = Callable[[], None]


class ExternalMetricsSource(Protocol):
    """Source of external metrics."""

    def read_now(self, namespace: str, metric: str, selector: Selector) -> ExternalReading | UnavailableReading | None:
        """Return the current value of a metric, or why it is unavailable; None if `read` would have to wait for it."""

    async def read(self, namespace: str, metric: str, selector: Selector) -> ExternalReading | UnavailableReading:
        """Return the current value of a metric, or why it is unavailable; backend failures are not raised.

        The caller sets the deadline and cancels a read that exceeds it.
        """

    def subscribe(self, changed: Callable[[Sequence[MetricChange]], None]) -> Unsubscribe:
        """Call ``changed`` on the event loop whenever metrics may have changed, until unsubscribed.

        ``changed`` does not block. An implementation that cannot detect changes never calls it; the controller reads
        every metric once per sync period anyway.
        """


class DecisionListener(Protocol):
    """Receives every decision, for example to show it on the debug page. Its methods do not block and do not raise."""

    def on_decision(self, key: str, autoscaler: Autoscaler, decision: Decision) -> None:
        """Handle a decision that was applied; ``autoscaler`` is the object as it was before."""

    def on_deleted(self, key: str) -> None:
        """Handle the deletion of an autoscaler."""

    def on_leadership_acquired(self, keys: Collection[str], shards: HeldShards) -> None:
        """Handle the start of a term, in which this process controls the autoscalers of the namespaces in ``shards``.

        A term ends when the next one starts, because this process acquires or releases a shard. ``keys`` are the
        autoscalers that exist.
        """

    def on_leadership_lost(self) -> None:
        """Handle the end of this process' term as leader; it may begin another term later."""

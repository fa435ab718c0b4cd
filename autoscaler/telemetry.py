"""The controller's own figures: upstream's names, so that dashboards keep working, and what only this one knows.

Written where something happens, rendered by whoever serves ``/metrics``; the registry is theirs.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from autoscaler.types.record import Record

_UPSTREAM: Final = "horizontal_pod_autoscaler_controller_"
_BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))
_LATENESS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0)


class Passed(Record):
    """How a pass ended, in upstream's words."""

    action: str = "none"
    """``scale_up``, ``scale_down`` or ``none``."""

    error: str = "none"
    """``spec``, ``internal`` or ``none``."""


class MetricState(Record):
    """How one external metric of an autoscaler fares."""

    metric: str
    failing_since: datetime | None = None
    in_fallback: bool = False


class AutoscalerState(Record):
    """What is to be said of one autoscaler when someone looks."""

    namespace: str
    name: str
    desired: int
    decided_at: datetime
    metrics: tuple[MetricState, ...] = ()


class ControllerTelemetry:
    """Every figure of the controller."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._passes = Counter(
            f"{_UPSTREAM}reconciliations", "Passes over one autoscaler.", ["action", "error"], registry=registry
        )
        self._duration = Histogram(
            f"{_UPSTREAM}reconciliation_duration_seconds",
            "How long a pass takes.",
            ["action", "error"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._metrics = Counter(
            f"{_UPSTREAM}metric_computation",
            "Metrics evaluated.",
            ["action", "error", "metric_type"],
            registry=registry,
        )
        self._metric_duration = Histogram(
            f"{_UPSTREAM}metric_computation_duration_seconds",
            "How long reading a metric takes.",
            ["action", "error", "metric_type"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.lateness = Histogram(
            "steadyscale_autoscaler_reconcile_delay_seconds",
            "How long after it was due a pass began.",
            buckets=_LATENESS,
            registry=registry,
        )
        self.stretch = Gauge(
            "steadyscale_autoscaler_sync_period_ratio",
            "By how much periods are longer than asked for, because there is more to do than time; 1 is as asked.",
            registry=registry,
        )
        self.stretch.set(1)
        self.leading = Gauge(
            "steadyscale_autoscaler_leader", "Whether this process is the one that controls.", registry=registry
        )
        self._passes_by: dict[Passed, tuple[Counter, Histogram]] = {}
        self._metrics_by: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}

    def passed(self, how: Passed, took: timedelta) -> None:
        """Count a pass."""
        found = self._passes_by.get(how)
        if found is None:
            labels = (how.action, how.error)
            found = self._passes_by[how] = (self._passes.labels(*labels), self._duration.labels(*labels))
        found[0].inc()
        found[1].observe(took.total_seconds())

    def computed(self, action: str, error: str, metric_type: str, took: timedelta) -> None:
        """Count a metric that was evaluated in a pass."""
        labels = (action, error, metric_type)
        found = self._metrics_by.get(labels)
        if found is None:
            found = (self._metrics.labels(*labels), self._metric_duration.labels(*labels))
            self._metrics_by[labels] = found
        found[0].inc()
        found[1].observe(took.total_seconds())


class StateCollector(Collector):
    """Tells the state of every autoscaler when someone looks, so that those that are gone are gone here as well."""

    def __init__(self, states: Callable[[], Iterable[AutoscalerState]], clock: Callable[[], datetime]) -> None:
        self._states = states
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Make the families."""
        count = GaugeMetricFamily(f"{_UPSTREAM}num_horizontal_pod_autoscalers", "Autoscalers there are.")
        desired = GaugeMetricFamily(
            f"{_UPSTREAM}desired_replicas", "Replicas an autoscaler asks for.", labels=["namespace", "hpa_name"]
        )
        age = GaugeMetricFamily(
            "steadyscale_autoscaler_decision_age_seconds",
            "How long ago an autoscaler was last decided.",
            labels=["namespace", "name"],
        )
        fallback = GaugeMetricFamily(
            "steadyscale_autoscaler_metric_fallback_active",
            "Whether a fallback speaks for a metric.",
            labels=["namespace", "name", "metric"],
        )
        failing = GaugeMetricFamily(
            "steadyscale_autoscaler_metric_failing_seconds",
            "For how long a metric with a fallback has been unreadable.",
            labels=["namespace", "name", "metric"],
        )
        states, now = tuple(self._states()), self._clock()
        count.add_metric([], len(states))
        for one in states:
            place = [one.namespace, one.name]
            desired.add_metric(place, one.desired)
            age.add_metric(place, _seconds(now - one.decided_at))
            for metric in one.metrics:
                fallback.add_metric([*place, metric.metric], metric.in_fallback)
                since = metric.failing_since
                failing.add_metric([*place, metric.metric], _seconds(now - since) if since else 0)
        yield from (count, desired, age, fallback, failing)


def _seconds(age: timedelta) -> float:
    return max(age.total_seconds(), 0.0)

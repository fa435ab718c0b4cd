"""Prometheus metrics of the controller.

Metrics that kube-controller-manager has as well keep its names, so that existing dashboards work. The caller provides
the registry and serves it at ``/metrics``.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from autoscaler.types.record import Record

_UPSTREAM: Final = "horizontal_pod_autoscaler_controller_"
_BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))
_DELAY_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0)


class MetricState(Record):
    """The state of one external metric with a fallback."""

    metric: str
    selector: str = ""
    failing_since: datetime | None = None
    in_fallback: bool = False


class AutoscalerState(Record):
    """The state of one autoscaler at scrape time."""

    namespace: str
    name: str
    desired: int
    decided_at: datetime
    metrics: tuple[MetricState, ...] = ()
    current: int = 0
    bounds: tuple[int, int] | None = None
    """minReplicas and maxReplicas; None if the last decision did not read the target."""

    conditions: tuple[tuple[str, str, str], ...] = ()
    """Type, status and reason of each condition."""


class OperationMetrics(Collector):
    """Number and duration of operations by labels, converted to metrics at scrape time.

    Each reconcile records several operations; a `Counter` and a `Histogram` would take a lock for each of them. The
    values of upstream's label ``action`` are scale_up, scale_down and none; of ``error`` spec, internal and none.
    """

    def __init__(
        self, registry: CollectorRegistry, labels: Sequence[str], count: tuple[str, str], duration: tuple[str, str]
    ) -> None:
        self._labels = labels
        self._count = count
        self._duration = duration
        self._buckets: dict[tuple[str, ...], list[int]] = {}
        """Number of operations by labels and bucket; the last bucket has no bound."""
        self._seconds: dict[tuple[str, ...], float] = {}
        registry.register(self)

    def record(self, duration: timedelta, *labels: str) -> None:
        if labels not in self._buckets:
            self._buckets[labels], self._seconds[labels] = [0] * (len(_BUCKETS) + 1), 0.0
        seconds = duration.total_seconds()
        self._buckets[labels][bisect_left(_BUCKETS, seconds)] += 1
        self._seconds[labels] += seconds

    def collect(self) -> Iterator[Metric]:
        (name, text), (duration_name, duration_text) = self._count, self._duration
        count = CounterMetricFamily(f"{_UPSTREAM}{name}", text, labels=self._labels)
        duration = HistogramMetricFamily(f"{_UPSTREAM}{duration_name}", duration_text, labels=self._labels)
        bounds = [*map(floatToGoString, _BUCKETS), "+Inf"]
        for labels, buckets in self._buckets.items():
            cumulative = list(accumulate(buckets))
            count.add_metric(labels, cumulative[-1])
            duration.add_metric(labels, list(zip(bounds, cumulative, strict=True)), self._seconds[labels])
        yield count
        yield duration


class ControllerTelemetry:
    """The metrics that the controller updates."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.reconciles = OperationMetrics(
            registry,
            ("action", "error"),
            ("reconciliations", "Number of reconciliations of autoscalers."),
            ("reconciliation_duration_seconds", "Time taken by one reconciliation of an autoscaler, in seconds."),
        )
        self.metrics = OperationMetrics(
            registry,
            ("action", "error", "metric_type"),
            ("metric_computation", "Number of metric computations."),
            ("metric_computation_duration_seconds", "Time taken to read one metric, in seconds."),
        )
        self.reconcile_failures = Counter(
            "steadyscale_autoscaler_reconcile_failures",
            "Number of reconciles that ended with an unexpected error; the autoscaler is retried with backoff.",
            registry=registry,
        )
        self.reconcile_delay = Histogram(
            "steadyscale_autoscaler_reconcile_delay_seconds",
            "Time between the due time and the start of a reconcile, in seconds.",
            buckets=_DELAY_BUCKETS,
            registry=registry,
        )
        self.sync_period_ratio = Gauge(
            "steadyscale_autoscaler_sync_period_ratio",
            "Ratio of the effective to the configured sync period; above 1, the controller is overloaded.",
            registry=registry,
        )
        self.sync_period_ratio.set(1)
        self.leader = Gauge(
            "steadyscale_autoscaler_leader",
            "Whether this process controls autoscalers, as the leader or the holder of a shard: 1 or 0.",
            registry=registry,
        )
        self.shards = ShardTelemetry(registry)


class ShardTelemetry:
    """The metrics of shards."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.total = Gauge(
            "steadyscale_autoscaler_shards", "Number of shards that is configured: --shards.", registry=registry
        )
        self.total.set(1)
        self.held = Gauge(
            "steadyscale_autoscaler_shards_held", "Number of shards that this process controls.", registry=registry
        )
        self.unheld = Gauge(
            "steadyscale_autoscaler_shards_unheld",
            "Number of shards that no process controls, as observed by this process.",
            registry=registry,
        )


class StateCollector(Collector):
    """Collects the state of every autoscaler at scrape time, so that deleted autoscalers have no metrics."""

    def __init__(self, states: Callable[[], Iterable[AutoscalerState]], clock: Callable[[], datetime]) -> None:
        self._states = states
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        states, now = tuple(self._states()), self._clock()
        yield GaugeMetricFamily(
            f"{_UPSTREAM}num_horizontal_pod_autoscalers", "Current number of autoscalers.", len(states)
        )
        desired = _gauge(f"{_UPSTREAM}desired_replicas", "Desired replicas of an autoscaler.", "namespace", "hpa_name")
        for state in states:
            desired.add_metric([state.namespace, state.name], state.desired)
        yield desired
        yield from _replicas(states)
        yield _ages(states, now)
        yield _conditions(states)
        yield from _fallbacks(states, now)


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=labels or ("namespace", "name"))


def _replicas(states: Sequence[AutoscalerState]) -> Iterator[Metric]:
    kinds = {
        "desired": "Desired replicas of an autoscaler.",
        "current": "Replicas of the target of an autoscaler at its last decision.",
        "min": "minReplicas of an autoscaler; absent if its target cannot be read.",
        "max": "maxReplicas of an autoscaler; absent if its target cannot be read.",
    }
    gauges = {kind: _gauge(f"steadyscale_autoscaler_{kind}_replicas", text) for kind, text in kinds.items()}
    for state in states:
        values = {"desired": state.desired, "current": state.current}
        if state.bounds is not None:
            values["min"], values["max"] = state.bounds
        for kind, value in values.items():
            gauges[kind].add_metric([state.namespace, state.name], value)
    yield from gauges.values()


def _ages(states: Sequence[AutoscalerState], now: datetime) -> Metric:
    age = _gauge(
        "steadyscale_autoscaler_decision_age_seconds", "Time since the last decision of an autoscaler, in seconds."
    )
    for state in states:
        age.add_metric([state.namespace, state.name], _seconds(now - state.decided_at))
    return age


def _conditions(states: Sequence[AutoscalerState]) -> Metric:
    conditions = _gauge(
        "steadyscale_autoscaler_condition",
        "The current status (True, False or Unknown) and reason of each condition of an autoscaler; always 1.",
        *("namespace", "name", "condition", "status", "reason"),
    )
    for state in states:
        for condition in state.conditions:
            conditions.add_metric([state.namespace, state.name, *condition], 1)
    return conditions


def _fallbacks(states: Sequence[AutoscalerState], now: datetime) -> Iterator[Metric]:
    labels = ("namespace", "name", "metric", "selector")
    active = _gauge(
        "steadyscale_autoscaler_metric_fallback_active", "Whether the fallback of a metric is active: 1 or 0.", *labels
    )
    failing = _gauge(
        "steadyscale_autoscaler_metric_failing_seconds",
        "Time since a metric with a fallback began to fail, in seconds; 0 while it can be read.",
        *labels,
    )
    for state in states:
        for metric in state.metrics:
            values, since = [state.namespace, state.name, metric.metric, metric.selector], metric.failing_since
            active.add_metric(values, metric.in_fallback)
            failing.add_metric(values, _seconds(now - since) if since else 0)
    yield from (active, failing)


def _seconds(age: timedelta) -> float:
    return max(age.total_seconds(), 0.0)

"""Prometheus metrics of watches, background tasks and events."""

from collections.abc import Iterator
from typing import Protocol
from weakref import WeakSet

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class Aged(Protocol):
    """The watch of a resource, with the age of its objects."""

    @property
    def resource(self) -> str: ...

    @property
    def age(self) -> float: ...


class KubeMetrics(Collector):
    """The metrics that all clients and informers of a process share."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.invalid_objects = Counter(
            "steadyscale_invalid_objects",
            "Number of objects and watch events that were skipped because they cannot be decoded.",
            ["resource"],
            registry=registry,
        )
        self.task_restarts = Counter(
            "steadyscale_task_restarts",
            "Number of restarts of background tasks after an unexpected error.",
            ["task"],
            registry=registry,
        )
        self.events_dropped = Counter(
            "steadyscale_autoscaler_events_dropped",
            "Number of Kubernetes events of autoscalers that were not delivered, by reason.",
            ["reason"],
            registry=registry,
        )
        self.watches: WeakSet[Aged] = WeakSet()
        if registry is not None:
            registry.register(self)

    def collect(self) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "steadyscale_watch_age_seconds",
            "Age of the last state of a watched resource that is known to be complete, in seconds.",
            labels=["resource"],
        )
        ages: dict[str, float] = {}
        for watch in tuple(self.watches):
            ages[watch.resource] = max(watch.age, ages.get(watch.resource, 0.0))
        for resource, seconds in ages.items():
            age.add_metric([resource], seconds)
        yield age

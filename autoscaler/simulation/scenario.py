"""The input of a simulation: an autoscaler, the history of its metrics, and the workload that it scales."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from autoscaler.settings import FeatureGates, Settings
from autoscaler.simulation.metric_history import MetricHistory, Outage
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.record import Record
from autoscaler.values.quantity import Quantity


class WorkloadModel(StrEnum):
    """How the values of the metrics follow from the history and the replicas; see ``docs/simulation.md``."""

    RECORDED = "recorded"
    """The value is what it was, whatever the number of replicas."""

    QUEUE = "queue"
    """The history has the arrivals per second; the value is the backlog that the ready replicas have not processed."""

    PER_POD = "per-pod"
    """The history has the total; the value is the total divided by the ready replicas."""

    MIXED = "mixed"
    """``per-pod`` for metrics of pods, ``recorded`` for External and Object metrics."""


MAX_DECISIONS: Final = 5_000_000
"""About ten minutes of work; a scenario with more is refused before it starts."""


MAX_REPLICAS: Final = 100_000
"""Maximum of spec.maxReplicas: each simulated replica needs memory, and a mistake in a spec can ask for billions."""


class Scenario(Record):
    """One autoscaler and its load."""

    autoscaler: Autoscaler
    """As it is stored, without defaults."""

    histories: tuple[MetricHistory, ...]
    """One history per entry of spec.metrics, in the same order."""

    start: datetime
    end: datetime
    replicas: int
    """Of the target at the start; all of them are ready."""

    model: WorkloadModel = WorkloadModel.RECORDED
    service_rate: float = 1.0
    """Of the model ``queue``: the items per second that one ready replica processes."""

    startup: timedelta = timedelta(0)
    """The time from the creation of a pod until it is ready."""

    requests: Mapping[str, Quantity] = {}
    """Of each pod, by resource: the denominator of a utilization."""

    outages: tuple[Outage, ...] = ()
    settings: Settings = Settings()
    gates: FeatureGates = FeatureGates()

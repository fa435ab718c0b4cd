"""All that a pass touches outside itself, in one place: what it looks at and what it writes to."""

from collections.abc import Callable
from dataclasses import dataclass

from autoscaler.kube.autoscalers import StatusWriter
from autoscaler.kube.events import EventRecorder
from autoscaler.kube.metrics_apis import MetricsApis
from autoscaler.kube.pods import Pods
from autoscaler.kube.scale import ScaleClient
from autoscaler.kube.store import Store
from autoscaler.kube.targets import Targets
from autoscaler.ports import Clock, ExternalMetrics
from autoscaler.types.autoscaler import Autoscaler


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What there is."""

    autoscalers: Store[Autoscaler]
    native: Store[Autoscaler]
    targets: Targets
    scales: ScaleClient
    pods: Pods
    metrics: MetricsApis
    external: ExternalMetrics | None
    """Who knows external metrics; None: whichever server the cluster has registered for them."""

    statuses: StatusWriter
    events: EventRecorder
    clock: Clock
    may_write: Callable[[], bool]
    """Whether this process is the one that controls, beyond any doubt; asked right before each write."""

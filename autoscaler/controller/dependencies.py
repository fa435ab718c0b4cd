"""The external dependencies of a reconcile, in one record."""

from collections.abc import Callable
from dataclasses import dataclass

from autoscaler.kube.autoscalers import StatusWriter
from autoscaler.kube.events import EventRecorder
from autoscaler.kube.informer import Informer
from autoscaler.kube.metrics_apis import MetricsApis
from autoscaler.kube.pods import PodLister
from autoscaler.kube.scale import ScaleClient
from autoscaler.kube.targets import TargetInformers
from autoscaler.ports import Clock, ExternalMetricsSource
from autoscaler.types.autoscaler import Autoscaler


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Informers, clients and the clock that the controller uses during one term as leader."""

    autoscalers: Informer[Autoscaler]
    hpas: Informer[Autoscaler]
    """HorizontalPodAutoscalers, to detect conflicts."""

    targets: TargetInformers
    scales: ScaleClient
    pods: PodLister
    metrics: MetricsApis
    external: ExternalMetricsSource | None
    """The in-process source of external metrics; None: the server registered for external.metrics.k8s.io."""

    statuses: StatusWriter
    events: EventRecorder
    clock: Clock
    may_write: Callable[[], bool]
    """Whether this process is certainly the leader; called right before each write."""

    @property
    def outdated(self) -> str:
        """Why the autoscalers are not known well enough to write a scale; empty if they are."""
        return self.autoscalers.problem or self.hpas.problem

"""The autoscaler's knobs, with the names and defaults of kube-controller-manager's flags, and its feature gates."""

from datetime import timedelta

from autoscaler.types.record import Record


class Settings(Record):
    """What the operator of a cluster sets once for all autoscalers."""

    tolerance: float = 0.1
    """How far a ratio may stray from 1 and change nothing, both ways, unless an autoscaler says otherwise.
    Upstream: --horizontal-pod-autoscaler-tolerance."""

    downscale_stabilization: timedelta = timedelta(minutes=5)
    """A scale-down waits until no recommendation of this long ago was higher.
    Upstream: --horizontal-pod-autoscaler-downscale-stabilization."""

    cpu_initialization_period: timedelta = timedelta(minutes=5)
    """For this long after its start a pod's CPU counts only while it is ready and was measured since it became so.
    Upstream: --horizontal-pod-autoscaler-cpu-initialization-period."""

    initial_readiness_delay: timedelta = timedelta(seconds=30)
    """A pod that turned unready within this long of starting was never ready; its CPU is not counted.
    Upstream: --horizontal-pod-autoscaler-initial-readiness-delay."""

    sync_period: timedelta = timedelta(seconds=15)
    """How often each autoscaler is looked at. Upstream: --horizontal-pod-autoscaler-sync-period."""

    fallback_floor: timedelta = timedelta(seconds=180)
    """The shortest failureDurationSeconds that is accepted; a test cluster may lower it."""


class FeatureGates(Record, rename=None):
    """Switches with Kubernetes' names, all on by default here."""

    HPAScaleToZero: bool = True
    """Allow minReplicas 0, remember who scaled to zero, and wake up from there (KEP-2021)."""

    HPAConfigurableTolerance: bool = True
    """Honour behavior.scaleUp.tolerance and behavior.scaleDown.tolerance (KEP-4951)."""

    HPAExternalMetricFallback: bool = True
    """Honour external.fallback (KEP-5679)."""

    HPAGeneration: bool = True
    """Write status.observedGeneration."""

    PodLevelResources: bool = True
    """Requests of a pod as a whole replace the sum of its containers' for utilization."""

"""Settings, feature gates and options of the controller, with the defaults of kube-controller-manager."""

from datetime import timedelta
from typing import Final

from autoscaler.types.record import Record


class Settings(Record):
    """Settings that apply to all autoscalers."""

    tolerance: float = 0.1
    """The change from 1.0 of the desired-to-actual metrics ratio below which no scaling occurs, unless the spec sets a
    tolerance. Upstream: --horizontal-pod-autoscaler-tolerance."""

    downscale_stabilization: timedelta = timedelta(minutes=5)
    """The window in which the highest recommendation applies before a scale-down.
    Upstream: --horizontal-pod-autoscaler-downscale-stabilization."""

    cpu_initialization_period: timedelta = timedelta(minutes=5)
    """The period after pod start in which CPU samples count only if the pod is ready and the sample is newer than that.
    Upstream: --horizontal-pod-autoscaler-cpu-initialization-period."""

    initial_readiness_delay: timedelta = timedelta(seconds=30)
    """The period after pod start in which readiness changes are treated as initial readiness; a pod that became
    unready in it was never ready, and its CPU does not count.
    Upstream: --horizontal-pod-autoscaler-initial-readiness-delay."""

    sync_period: timedelta = timedelta(seconds=15)
    """The interval at which each autoscaler is reconciled. Upstream: --horizontal-pod-autoscaler-sync-period."""

    fallback_floor: timedelta = timedelta(seconds=180)
    """The minimum of failureDurationSeconds; lower it only in test clusters."""


class FeatureGates(Record, rename=None):
    """Feature gates with Kubernetes' names; all are enabled by default."""

    HPAScaleToZero: bool = True
    """Allow minReplicas 0, and scale up again from zero (KEP-2021)."""

    HPAConfigurableTolerance: bool = True
    """Honour behavior.scaleUp.tolerance and behavior.scaleDown.tolerance (KEP-4951)."""

    HPAExternalMetricFallback: bool = True
    """Honour external.fallback (KEP-5679)."""

    HPAGeneration: bool = True
    """Write status.observedGeneration."""

    PodLevelResources: bool = True
    """Compute utilization from pod-level requests, where set, instead of the sum of container requests."""


EMBEDDED: Final = "embedded"
CLUSTER: Final = "cluster"


class ControllerOptions(Record):
    """Options of the controller process."""

    settings: Settings = Settings()
    gates: FeatureGates = FeatureGates()
    concurrent_syncs: int = 5
    """The number of autoscalers that are reconciled concurrently, without those in the slow pool.
    Upstream: --concurrent-horizontal-pod-autoscaler-syncs."""

    external_metrics: str = EMBEDDED
    """Source of external metrics: ``embedded`` (this process) or ``cluster`` (the registered metrics API)."""

    leader_elect: bool = True
    """Run the controller only while holding the Lease; if disabled, only one process may run."""

    lease_duration: timedelta = timedelta(seconds=15)
    """How long other processes wait after the last observed renewal before they acquire the lease."""

    renew_deadline: timedelta = timedelta(seconds=10)
    """How long the leader retries to renew before it gives up leadership."""

    retry_period: timedelta = timedelta(seconds=2)
    """The interval between attempts to acquire or renew the lease."""

    shards: int = 1
    """The number of shards into which the namespaces are divided; each shard is controlled by one process at a time."""

    lease_name: str = "steadyscale"
    lease_namespace: str = "steadyscale"

"""The demand: the replicas that the metrics alone ask for at one moment, without tolerance, delay or limits."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from autoscaler.algorithm.metric_context import MetricContext
from autoscaler.algorithm.propose import propose
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.metric_result import Proposal, Tolerance
from autoscaler.types.observation import Pod, Reading, ScaleTarget
from autoscaler.types.spec import Metric

_NO_TOLERANCE: Final = Tolerance(0.0, 0.0)


def demand_of(
    metrics: Sequence[Metric],
    readings: Sequence[Reading],
    target: ScaleTarget,
    pods: tuple[Pod, ...],
    settings: Settings,
    gates: FeatureGates,
    now: datetime,
) -> int | None:
    """Return the highest proposal of the metrics; None if no metric has a value."""
    context = MetricContext("", target, pods, _NO_TOLERANCE, settings, gates, now)
    results = [propose(metric, reading, context) for metric, reading in zip(metrics, readings, strict=True)]
    return max((result.replicas for result in results if isinstance(result, Proposal)), default=None)

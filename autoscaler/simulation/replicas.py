"""The replicas of the simulated workload: each becomes ready some time after its creation."""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

from autoscaler.types.observation import Container, Pod
from autoscaler.types.spec import Metric
from autoscaler.types.status import FALSE, TRUE
from autoscaler.values.quantity import Quantity

ReadyTimes: TypeAlias = tuple[float, ...]
"""When each replica becomes or became ready, in seconds since the epoch, in ascending order."""


def count_ready(replicas: ReadyTimes, time: float) -> int:
    return bisect_right(replicas, time)


def rescaled(replicas: ReadyTimes, count: int, ready_at: float) -> ReadyTimes:
    """Return the replicas after a rescale; like a ReplicaSet, scaling down removes the newest ones."""
    return replicas[:count] if count <= len(replicas) else (*replicas, *[ready_at] * (count - len(replicas)))


def containers_of(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """Return the names of the containers of each pod: those that the metrics name, or one."""
    sources = [metric.container_resource for metric in metrics]
    return tuple(dict.fromkeys(source.container for source in sources if source is not None)) or ("app",)


@lru_cache(maxsize=8)
def pods_of(
    replicas: ReadyTimes,
    ready: int,
    startup: timedelta,
    requests: tuple[tuple[str, Quantity], ...],
    containers: tuple[str, ...],
) -> tuple[Pod, ...]:
    """Return the pods, of which the first ``ready`` are ready. Cached: most decisions change no pod."""
    of_pod = tuple(Container(name, dict(requests)) for name in containers)
    pods = []
    for index, ready_at in enumerate(replicas):
        since = datetime.fromtimestamp(ready_at, UTC)
        started = since - startup
        is_ready = index < ready
        pod = Pod(
            name=f"pod-{index:05}",
            phase="Running",
            labels={},
            containers=of_pod,
            ready=TRUE if is_ready else FALSE,
            ready_since=since if is_ready else started,
            started=started,
        )
        pods.append(pod)
    return tuple(pods)

"""The replicas of the simulated workload: each becomes ready some time after its creation."""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

from autoscaler.types.observation import Container, Pod
from autoscaler.types.status import FALSE, TRUE
from autoscaler.values.quantity import Quantity

ReadyTimes: TypeAlias = tuple[float, ...]
"""When each replica becomes or became ready, in seconds since the epoch, in ascending order."""


def count_ready(replicas: ReadyTimes, time: float) -> int:
    return bisect_right(replicas, time)


def rescaled(replicas: ReadyTimes, count: int, ready_at: float) -> ReadyTimes:
    """Return the replicas after a rescale; like a ReplicaSet, scaling down removes the newest ones."""
    return replicas[:count] if count <= len(replicas) else (*replicas, *[ready_at] * (count - len(replicas)))


@lru_cache(maxsize=8)
def pods_of(
    replicas: ReadyTimes, ready: int, startup: timedelta, requests: tuple[tuple[str, Quantity], ...]
) -> tuple[Pod, ...]:
    """Return the pods, of which the first ``ready`` are ready. Cached: most decisions change no pod."""
    container = Container("app", dict(requests))
    pods = []
    for index, ready_at in enumerate(replicas):
        since = datetime.fromtimestamp(ready_at, UTC)
        started = since - startup
        is_ready = index < ready
        pod = Pod(
            name=f"pod-{index:05}",
            phase="Running",
            labels={},
            containers=(container,),
            ready=TRUE if is_ready else FALSE,
            ready_since=since if is_ready else started,
            started=started,
        )
        pods.append(pod)
    return tuple(pods)

"""Sorts pods into four piles: ready, unready, missing, ignored."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from autoscaler.settings import Settings
from autoscaler.types.metric_result import PodGroups
from autoscaler.types.observation import Pod, PodSample
from autoscaler.types.status import FALSE, TRUE


def sort_pods(
    pods: Sequence[Pod], samples: Mapping[str, PodSample], resource: str, settings: Settings, now: datetime
) -> PodGroups:
    """Put every pod on one pile; only for cpu does it matter whether a pod is ready."""
    ready = 0
    unready: list[str] = []
    missing: list[str] = []
    ignored: list[str] = []
    judge_readiness = resource == "cpu"
    for pod in pods:
        if pod.terminating or pod.phase == "Failed":
            ignored.append(pod.name)
        elif pod.phase == "Pending":
            unready.append(pod.name)
        elif (sample := samples.get(pod.name)) is None:
            missing.append(pod.name)
        elif judge_readiness and not _cpu_can_be_trusted(pod, sample, settings, now):
            unready.append(pod.name)
        else:
            ready += 1
    return PodGroups(ready, tuple(unready), tuple(missing), tuple(ignored))


def count_serving(pods: Sequence[Pod]) -> int:
    """Count the pods that run and are ready; one that is terminating still counts."""
    return sum(1 for pod in pods if pod.phase == "Running" and pod.ready == TRUE)


def _cpu_can_be_trusted(pod: Pod, sample: PodSample, settings: Settings, now: datetime) -> bool:
    """Tell whether a pod's CPU is that of serving, not of starting up."""
    if pod.ready is None or pod.started is None:
        return False
    since = pod.ready_since
    if pod.started + settings.cpu_initialization_period > now:
        return pod.ready != FALSE and (since is None or sample.at >= since + sample.window)
    # A condition without a time counts as one that has not changed since the beginning of time.
    never_was_ready = since is None or pod.started + settings.initial_readiness_delay > since
    return not (pod.ready == FALSE and never_was_ready)

"""Group pods as upstream does: ready, unready, missing (no metric), ignored (failed or terminating)."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from autoscaler.settings import Settings
from autoscaler.types.metric_result import PodGroups
from autoscaler.types.observation import Pod, PodSample
from autoscaler.types.status import FALSE, TRUE


def group_pods(
    pods: Sequence[Pod], samples: Mapping[str, PodSample], resource: str, settings: Settings, now: datetime
) -> PodGroups:
    """Assign every pod to one group; readiness is checked only for cpu."""
    ready = 0
    unready: list[str] = []
    missing: list[str] = []
    ignored: list[str] = []
    check_readiness = resource == "cpu"
    for pod in pods:
        if pod.terminating or pod.phase == "Failed":
            ignored.append(pod.name)
        elif pod.phase == "Pending":
            unready.append(pod.name)
        elif (sample := samples.get(pod.name)) is None:
            missing.append(pod.name)
        elif check_readiness and not _is_ready_for_cpu(pod, sample, settings, now):
            unready.append(pod.name)
        else:
            ready += 1
    return PodGroups(ready, tuple(unready), tuple(missing), tuple(ignored))


def count_ready(pods: Sequence[Pod]) -> int:
    """Count the running and ready pods; like upstream, terminating ones too."""
    return sum(1 for pod in pods if pod.phase == "Running" and pod.ready == TRUE)


def _is_ready_for_cpu(pod: Pod, sample: PodSample, settings: Settings, now: datetime) -> bool:
    """Return whether a pod's CPU usage counts; the usage during startup does not."""
    if pod.ready is None or pod.started is None:
        return False
    since = pod.ready_since
    if pod.started + settings.cpu_initialization_period > now:
        return pod.ready != FALSE and (since is None or sample.at >= since + sample.window)
    # Go's zero time: a condition without a transition time counts as unchanged since the pod started.
    never_was_ready = since is None or pod.started + settings.initial_readiness_delay > since
    return not (pod.ready == FALSE and never_was_ready)

"""Groups pods by state and sums their resource requests, as inputs of the calculation.

The groups are those of upstream: ready, unready, missing (no metric), ignored (failed or terminating). Requests are the
denominator of utilization.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from autoscaler.settings import Settings
from autoscaler.types.metric_result import CalculationFailure, PodGroups
from autoscaler.types.observation import Pod, PodSample
from autoscaler.types.status import FALSE, TRUE
from autoscaler.values.arithmetic import wrap64
from autoscaler.values.quantity import Quantity

_SIDECAR = "Always"
"""The restart policy that makes an init container a sidecar."""


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
    """Count the running and ready pods; like upstream, including terminating pods."""
    return sum(1 for pod in pods if pod.phase == "Running" and pod.ready == TRUE)


def _is_ready_for_cpu(pod: Pod, sample: PodSample, settings: Settings, now: datetime) -> bool:
    """Return whether a pod's CPU usage counts; the usage during startup does not."""
    if pod.ready is None or pod.started is None:
        return False
    since = pod.ready_since
    if pod.started + settings.cpu_initialization_period > now:
        return pod.ready != FALSE and (since is None or sample.at >= since + sample.window)
    # A condition without a transition time has Go's zero time upstream, which is before the start of every pod.
    never_was_ready = since is None or pod.started + settings.initial_readiness_delay > since
    return not (pod.ready == FALSE and never_was_ready)


def requests_of(
    pods: Sequence[Pod], resource: str, container: str, *, pod_level: bool
) -> dict[str, int] | CalculationFailure:
    """Return the request of each pod in thousandths, in any phase; a pod without a request fails the calculation.

    An empty ``container`` means all containers. ``pod_level``: use pod-level requests where a pod has them.
    """
    requests: dict[str, int] = {}
    for pod in pods:
        if pod.requests and pod_level and not container and any(map(_is_pod_level_resource, pod.requests)):
            request = _pod_level_request(pod, resource)
        else:
            request = _container_requests(pod, resource, container)
        if isinstance(request, CalculationFailure):
            return request
        requests[pod.name] = request
    return requests


def _is_pod_level_resource(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _container_requests(pod: Pod, resource: str, container: str) -> int | CalculationFailure:
    """Return the sum over containers and sidecars, or the request of the named container."""
    total, containers = 0, pod.containers
    if pod.init_containers:
        containers = (*containers, *(init for init in pod.init_containers if init.restart_policy == _SIDECAR))
    for candidate in containers:
        if container and candidate.name != container:
            continue
        request = candidate.requests.get(resource)
        if request is None:
            return CalculationFailure(f"missing request for {resource} in container {candidate.name} of Pod {pod.name}")
        total += request.milli()
        if candidate.name == container:
            return wrap64(total)
    if container:
        return CalculationFailure(f"container {container} not found in Pod {pod.name}")
    return wrap64(total)


def _pod_level_request(pod: Pod, resource: str) -> int | CalculationFailure:
    """Return the pod-level request, by default the effective request of the containers, plus the pod's overhead."""
    request = _aggregate(pod, resource)
    if pod.requests is not None and resource in pod.requests and _is_pod_level_resource(resource):
        request = pod.requests[resource]
    request = _plus(request, pod.overhead or {}, resource)
    if request is None:
        return CalculationFailure(f"missing pod-level request for {resource} in Pod {pod.name}")
    return request.milli()


def _aggregate(pod: Pod, resource: str) -> Quantity | None:
    """Return the effective request of the containers, as the scheduler computes it.

    It is the larger of two sums: that of all containers and sidecars, and the peak while the init containers run.
    """
    running: Quantity | None = None
    for container in pod.containers:
        running = _plus(running, container.requests, resource)
    sidecars: Quantity | None = None
    peak: Quantity | None = None
    for init in pod.init_containers:
        if init.restart_policy == _SIDECAR:
            running = _plus(running, init.requests, resource)
            sidecars = _plus(sidecars, init.requests, resource)
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, _plus(sidecars, init.requests, resource))
    return _larger(running, peak)


def _plus(total: Quantity | None, requests: Mapping[str, Quantity], resource: str) -> Quantity | None:
    request = requests.get(resource)
    if request is None:
        return total
    return request if total is None else total + request


def _larger(first: Quantity | None, second: Quantity | None) -> Quantity | None:
    if first is None or (second is not None and second > first):
        return second
    return first

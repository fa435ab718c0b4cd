"""The resource requests of pods: the denominator of utilization."""

from collections.abc import Mapping, Sequence

from autoscaler.types.metric_result import CalculationFailure
from autoscaler.types.observation import Pod
from autoscaler.values.arithmetic import wrap64
from autoscaler.values.quantity import Quantity

_SIDECAR = "Always"


def requests_of(
    pods: Sequence[Pod], resource: str, container: str, *, pod_level: bool
) -> dict[str, int] | CalculationFailure:
    """Return the request of each pod in milli, whatever its phase; a pod without a request fails the calculation."""
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
    """Sum containers and sidecars, or return the request of the named container."""
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
    """Return the pod-level request plus overhead; the sum of containers does not include overhead."""
    request = _aggregate(pod, resource)
    if pod.requests is not None and resource in pod.requests and _is_pod_level_resource(resource):
        request = pod.requests[resource]
    request = _plus(request, pod.overhead or {}, resource)
    if request is None:
        return CalculationFailure(f"missing pod-level request for {resource} in Pod {pod.name}")
    return request.milli()


def _aggregate(pod: Pod, resource: str) -> Quantity | None:
    """Return the effective request: the larger of the containers with sidecars, and the peak during initialization."""
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

"""Decode the inputs that vector files share: times in seconds, pods, and responses of the three metrics APIs."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from autoscaler import readings
from autoscaler.readings import MetricsApi, PodUsage, PodValue
from autoscaler.types.observation import BadSelector, Container, Pod, Reading, UnavailableReading
from autoscaler.types.spec import CONTAINER_RESOURCE, EXTERNAL, OBJECT, PODS, RESOURCE, Metric
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import LabelSelector, SelectorError, from_label_selector

EPOCH = datetime(2000, 1, 1, 2, tzinfo=UTC)
"""Time 0 of all vectors; its value is arbitrary."""

Json = Mapping[str, Any]


def moment(seconds: int) -> datetime:
    """Convert seconds after time 0 to a timestamp."""
    return EPOCH + timedelta(seconds=seconds)


def optional_moment(seconds: int | None) -> datetime | None:
    """Convert seconds after time 0 to a timestamp, if set."""
    return None if seconds is None else moment(seconds)


def seconds_of(time: datetime | None) -> int | None:
    """Convert a timestamp to whole seconds after time 0, if set."""
    return None if time is None else round((time - EPOCH).total_seconds())


def pod(given: Json) -> Pod:
    """Decode a pod."""
    return Pod(
        name=given["name"],
        phase=given.get("phase") or "",
        labels=given.get("labels") or {},
        containers=_containers(given.get("containers")),
        init_containers=_containers(given.get("initContainers")),
        requests=_quantities(given["podRequests"]) if given.get("podRequests") else None,
        overhead=_quantities(given["overhead"]) if given.get("overhead") else None,
        ready=given.get("ready"),
        ready_since=optional_moment(given.get("readyTransition")),
        started=optional_moment(given.get("startTime")),
        terminating=given.get("deletionTimestamp") is not None,
    )


def _containers(given: Sequence[Json] | None) -> tuple[Container, ...]:
    return tuple(
        Container(entry["name"], _quantities(entry.get("requests")), entry.get("restartPolicy"))
        for entry in given or ()
    )


def _quantities(given: Mapping[str, str] | None) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in (given or {}).items()}


def resource_reading(metrics: Json, resource: str, container: str) -> Reading:
    """Decode a response of the resource metrics API."""
    response = metrics.get("resource") or {}
    if response.get("error"):
        return readings.api_failure(MetricsApi.RESOURCE, response["error"])
    items = [
        PodUsage(
            item["pod"],
            item.get("usage") or {},
            moment(item.get("timestamp", response.get("timestamp", 0))),
            timedelta(seconds=item.get("windowSeconds", response.get("windowSeconds", 0)) or 0),
        )
        for item in response.get("items") or ()
    ]
    return readings.read_resource(items, resource, container)


def pods_reading(metrics: Json, name: str) -> Reading:
    """Decode a response of the custom metrics API for a Pods metric."""
    response = (metrics.get("pods") or {}).get(name) or {}
    if response.get("error"):
        return readings.api_failure(MetricsApi.CUSTOM, response["error"])
    window = response.get("windowSeconds")
    items = [
        PodValue(
            item["pod"],
            item.get("value", 0),
            moment(item.get("timestamp", response.get("timestamp", 0))),
            None if window is None else timedelta(seconds=window),
        )
        for item in response.get("items") or ()
    ]
    return readings.read_pods(items)


def object_reading(metrics: Json, name: str) -> Reading:
    """Decode a response of the custom metrics API for an Object metric."""
    response = (metrics.get("object") or {}).get(name)
    if response is None:
        return readings.api_failure(MetricsApi.CUSTOM, f"the vector has no object metric {name}")
    if response.get("error"):
        return readings.api_failure(MetricsApi.CUSTOM, response["error"])
    return readings.read_object(response.get("value", 0), moment(response.get("timestamp", 0)))


def external_reading(metrics: Json, name: str) -> Reading:
    """Decode a response of the external metrics API."""
    response = (metrics.get("external") or {}).get(name) or {}
    if response.get("error"):
        return readings.api_failure(MetricsApi.EXTERNAL, response["error"])
    return readings.read_external(response.get("values") or (), moment(response.get("timestamp", 0)))


def reading_of(metric: Metric, metrics: Json) -> Reading:
    """Decode the reading of a metric of any type."""
    if metric.type == RESOURCE and metric.resource is not None:
        return resource_reading(metrics, metric.resource.name, "")
    if metric.type == CONTAINER_RESOURCE and metric.container_resource is not None:
        return resource_reading(metrics, metric.container_resource.name, metric.container_resource.container)
    if metric.type == PODS and metric.pods is not None:
        return selector_error(metric.pods.metric.selector) or pods_reading(metrics, metric.pods.metric.name)
    if metric.type == OBJECT and metric.object is not None:
        return selector_error(metric.object.metric.selector) or object_reading(metrics, metric.object.metric.name)
    if metric.type == EXTERNAL and metric.external is not None:
        return selector_error(metric.external.metric.selector) or external_reading(metrics, metric.external.metric.name)
    return UnavailableReading("unknown metric type")


def selector_error(selector: LabelSelector | None) -> BadSelector | None:
    """Return the error of an invalid selector of a metric."""
    try:
        from_label_selector(selector)
    except SelectorError as error:
        return BadSelector(str(error))
    return None

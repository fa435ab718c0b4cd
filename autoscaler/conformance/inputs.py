"""The inputs that vector files share: times as seconds, pods, and what the three metrics APIs answer."""

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
"""Any moment would do: vectors only speak of seconds before or after it."""

Json = Mapping[str, Any]


def moment(seconds: int) -> datetime:
    """Turn seconds after the case's zero into a moment."""
    return EPOCH + timedelta(seconds=seconds)


def optional_moment(seconds: int | None) -> datetime | None:
    """Turn seconds after the case's zero into a moment, where there are any."""
    return None if seconds is None else moment(seconds)


def seconds_of(time: datetime | None) -> int | None:
    """Turn a moment back into whole seconds after the case's zero."""
    return None if time is None else round((time - EPOCH).total_seconds())


def pod(given: Json) -> Pod:
    """Make a pod."""
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
        Container(one["name"], _quantities(one.get("requests")), one.get("restartPolicy")) for one in given or ()
    )


def _quantities(given: Mapping[str, str] | None) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in (given or {}).items()}


def resource_reading(metrics: Json, resource: str, container: str) -> Reading:
    """Read a resource as the resource metrics API answers."""
    answer = metrics.get("resource") or {}
    if answer.get("error"):
        return readings.failed(MetricsApi.RESOURCE, answer["error"])
    items = [
        PodUsage(
            item["pod"],
            item.get("usage") or {},
            moment(item.get("timestamp", answer.get("timestamp", 0))),
            timedelta(seconds=item.get("windowSeconds", answer.get("windowSeconds", 0)) or 0),
        )
        for item in answer.get("items") or ()
    ]
    return readings.read_resource(items, resource, container)


def pods_reading(metrics: Json, name: str) -> Reading:
    """Read a metric of each pod as the custom metrics API answers."""
    answer = (metrics.get("pods") or {}).get(name) or {}
    if answer.get("error"):
        return readings.failed(MetricsApi.CUSTOM, answer["error"])
    window = answer.get("windowSeconds")
    items = [
        PodValue(
            item["pod"],
            item.get("value", 0),
            moment(item.get("timestamp", answer.get("timestamp", 0))),
            None if window is None else timedelta(seconds=window),
        )
        for item in answer.get("items") or ()
    ]
    return readings.read_pods(items)


def object_reading(metrics: Json, name: str) -> Reading:
    """Read a metric of one object as the custom metrics API answers."""
    answer = (metrics.get("object") or {}).get(name)
    if answer is None:
        return readings.failed(MetricsApi.CUSTOM, f"the vector has no object metric {name}")
    if answer.get("error"):
        return readings.failed(MetricsApi.CUSTOM, answer["error"])
    return readings.read_object(answer.get("value", 0), moment(answer.get("timestamp", 0)))


def external_reading(metrics: Json, name: str) -> Reading:
    """Read a metric of the outside world as the external metrics API answers."""
    answer = (metrics.get("external") or {}).get(name) or {}
    if answer.get("error"):
        return readings.failed(MetricsApi.EXTERNAL, answer["error"])
    return readings.read_external(answer.get("values") or (), moment(answer.get("timestamp", 0)))


def reading_of(metric: Metric, metrics: Json) -> Reading:
    """Read whatever a metric of a spec asks for."""
    if metric.type == RESOURCE and metric.resource is not None:
        return resource_reading(metrics, metric.resource.name, "")
    if metric.type == CONTAINER_RESOURCE and metric.container_resource is not None:
        return resource_reading(metrics, metric.container_resource.name, metric.container_resource.container)
    if metric.type == PODS and metric.pods is not None:
        return unparsable(metric.pods.metric.selector) or pods_reading(metrics, metric.pods.metric.name)
    if metric.type == OBJECT and metric.object is not None:
        return unparsable(metric.object.metric.selector) or object_reading(metrics, metric.object.metric.name)
    if metric.type == EXTERNAL and metric.external is not None:
        return unparsable(metric.external.metric.selector) or external_reading(metrics, metric.external.metric.name)
    return UnavailableReading("there is nothing to read for this type")


def unparsable(selector: LabelSelector | None) -> BadSelector | None:
    """Say why a metric's selector cannot be asked for, if so."""
    try:
        from_label_selector(selector)
    except SelectorError as error:
        return BadSelector(str(error))
    return None

"""Decode what vector files share: times in seconds, pods, histories, and responses of the three metrics APIs."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from msgspec import convert
from msgspec.structs import asdict

from autoscaler import readings
from autoscaler.readings import MetricsApi, PodUsage, PodValue
from autoscaler.types import spec
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.observation import BadSelector, ObjectReading, Pod, Reading, UnavailableReading
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import SelectorError, from_label_selector

EPOCH = datetime(2000, 1, 1, 2, tzinfo=UTC)
"""Time 0 of all vectors."""

Json: TypeAlias = Mapping[str, Any]
Comparison: TypeAlias = tuple[Json, Json]
"""The outputs of a case, first as expected and then as computed."""


def moment(seconds: int) -> datetime:
    """Convert seconds after time 0 to a timestamp."""
    return EPOCH + timedelta(seconds=seconds)


def seconds_of(time: datetime | None) -> int | None:
    """Convert a timestamp to whole seconds after time 0, if set."""
    return None if time is None else round((time - EPOCH).total_seconds())


def decode_pod(given: Json) -> Pod:
    """Decode a pod. Its fields have the names of ``Pod``, except those that are replaced here."""
    replaced = {
        "requests": given.get("podRequests"),
        "readySince": None if given.get("readyTransition") is None else moment(given["readyTransition"]),
        "started": None if given.get("startTime") is None else moment(given["startTime"]),
        "terminating": given.get("deletionTimestamp") is not None,
    }
    return convert({**given, **replaced}, Pod, dec_hook=lambda _, text: Quantity.parse(text))


def decode_history(given: Json) -> History:
    """Decode a history, whose entries have ages at time 0 instead of times."""
    keys = {"recommendations": "recommendations", "scaleUps": "scaleUpEvents", "scaleDowns": "scaleDownEvents"}
    entries = {
        field: [{**entry, "at": moment(-entry["age"])} for entry in given.get(key) or ()] for field, key in keys.items()
    }
    return convert(entries, History)


def encode_history(history: History, now: datetime) -> Json:
    """Encode a history, with ages at ``now`` instead of times."""
    return {
        "recommendations": _with_ages(history.recommendations, now),
        "scaleUpEvents": _with_ages(history.scale_ups, now),
        "scaleDownEvents": _with_ages(history.scale_downs, now),
    }


def _with_ages(entries: Sequence[Recommendation | ScaleEvent], now: datetime) -> list[Json]:
    return [{**asdict(entry), "at": None, "age": round((now - entry.at).total_seconds())} for entry in entries]


def reading_of(metric: spec.Metric, metrics: Json) -> Reading:
    """Decode the reading of a metric of any type."""
    match metric:
        case spec.Metric(type=spec.RESOURCE, resource=spec.ResourceSource(name=resource)):
            return _resource_reading(metrics, resource, "")
        case spec.Metric(
            type=spec.CONTAINER_RESOURCE,
            container_resource=spec.ContainerResourceSource(name=resource, container=container),
        ):
            return _resource_reading(metrics, resource, container)
        case (
            spec.Metric(type=spec.PODS, pods=spec.PodsSource(metric=identifier))
            | spec.Metric(type=spec.OBJECT, object=spec.ObjectSource(metric=identifier))
            | spec.Metric(type=spec.EXTERNAL, external=spec.ExternalSource(metric=identifier))
        ):
            return named_reading(metric.type, identifier, metrics)
        case _:
            return UnavailableReading("unknown metric type")


def _resource_reading(metrics: Json, resource: str, container: str) -> Reading:
    response = metrics.get("resource") or {}
    if response.get("error"):
        return readings.api_failure(MetricsApi.RESOURCE, response["error"])
    usages = []
    for item in response.get("items") or ():
        sample = {**response, **item}
        window = timedelta(seconds=sample["windowSeconds"])
        usages.append(PodUsage(sample["pod"], sample["usage"], moment(sample["timestamp"]), window))
    return readings.read_resource(usages, resource, container)


def named_reading(kind: str, identifier: spec.MetricIdentifier, metrics: Json) -> Reading:
    """Decode the reading of a Pods, Object or External metric; a missing response has no items."""
    try:
        from_label_selector(identifier.selector)
    except SelectorError as error:
        return BadSelector(str(error))
    response = (metrics.get(kind.lower()) or {}).get(identifier.name) or {}
    if response.get("error"):
        api = MetricsApi.EXTERNAL if kind == spec.EXTERNAL else MetricsApi.CUSTOM
        return readings.api_failure(api, response["error"])
    at = moment(response.get("timestamp", 0))
    if kind == spec.OBJECT:
        return ObjectReading(response["value"], at)
    if kind == spec.EXTERNAL:
        return readings.read_external(response.get("values") or (), at)
    window = None if response.get("windowSeconds") is None else timedelta(seconds=response["windowSeconds"])
    samples = [{**response, **item} for item in response.get("items") or ()]
    return readings.read_pods([PodValue(s["pod"], s["value"], moment(s["timestamp"]), window) for s in samples])

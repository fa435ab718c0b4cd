"""Validates spec.metrics: types, sources and targets."""

from collections.abc import Iterator
from typing import Final

from autoscaler.types.record import Record
from autoscaler.types.spec import (
    CONTAINER_RESOURCE,
    EXTERNAL,
    OBJECT,
    PODS,
    RESOURCE,
    ExternalSource,
    Metric,
    MetricIdentifier,
    ObjectSource,
    PodsSource,
)
from autoscaler.validation.fallback import fallback_problems
from autoscaler.validation.problem import ValidationProblem, forbidden, invalid, not_supported, required
from autoscaler.validation.reference import ApiVersionRule, reference_problems
from autoscaler.validation.resource import container_resource_problems, resource_problems
from autoscaler.validation.target import target_problems
from autoscaler.values.names import path_segment_problems

_FIELD_OF: Final = {
    OBJECT: "object",
    EXTERNAL: "external",
    PODS: "pods",
    RESOURCE: "resource",
    CONTAINER_RESOURCE: "containerResource",
}
"""The key of each type's source, in the order of upstream's checks."""


class MetricRules(Record):
    """Parameters of the validation of metrics."""

    described_object: ApiVersionRule
    fallback_floor_seconds: int


def metrics_problems(
    metrics: tuple[Metric, ...], path: str, *, min_replicas: int | None, rules: MetricRules
) -> Iterator[ValidationProblem]:
    """Yield the problems of each metric and of all metrics together."""
    for index, metric in enumerate(metrics):
        yield from _metric_problems(metric, f"{path}[{index}]", rules)
    if min_replicas == 0 and not any(metric.type in {OBJECT, EXTERNAL} for metric in metrics):
        yield forbidden(path, "must specify at least one Object or External metric to support scaling to zero replicas")


def _metric_problems(metric: Metric, path: str, rules: MetricRules) -> Iterator[ValidationProblem]:
    if not metric.type:
        yield required(f"{path}.type", "must specify a metric source type")
    if metric.type not in _FIELD_OF:
        yield not_supported(f"{path}.type", metric.type, _FIELD_OF)
    yield from _first_source_problems(metric, path, rules)
    present = _present(metric)
    expected = _FIELD_OF.get(metric.type)
    if expected is None:
        yield not_supported(f"{path}.type", metric.type, _FIELD_OF)  # as upstream, a second time
    elif expected not in present:
        yield required(f"{path}.{expected}", "must populate information for the given metric source")
    if len(present) > 1:
        for field in sorted(present):
            if field != expected:
                yield forbidden(f"{path}.{field}", "must populate the given metric source only")


def _present(metric: Metric) -> tuple[str, ...]:
    sources = (metric.object, metric.external, metric.pods, metric.resource, metric.container_resource)
    return tuple(field for field, source in zip(_FIELD_OF.values(), sources, strict=True) if source is not None)


def _first_source_problems(metric: Metric, path: str, rules: MetricRules) -> Iterator[ValidationProblem]:
    """Yield the problems of the first source that is set, whatever the type; more than one source is invalid."""
    if metric.object is not None:
        return _object_problems(metric.object, f"{path}.object", rules)
    if metric.external is not None:
        return _external_problems(metric.external, f"{path}.external", rules)
    if metric.pods is not None:
        return _pods_problems(metric.pods, f"{path}.pods")
    if metric.resource is not None:
        return resource_problems(metric.resource, f"{path}.resource")
    if metric.container_resource is not None:
        return container_resource_problems(metric.container_resource, f"{path}.containerResource")
    return iter(())


def _object_problems(source: ObjectSource, path: str, rules: MetricRules) -> Iterator[ValidationProblem]:
    yield from reference_problems(source.described_object, f"{path}.describedObject", rules.described_object)
    yield from _identifier_problems(source.metric, f"{path}.metric")
    yield from target_problems(source.target, f"{path}.target")
    if source.target.value is None and source.target.average_value is None:
        yield required(f"{path}.target.averageValue", "must set either a target value or averageValue")


def _external_problems(source: ExternalSource, path: str, rules: MetricRules) -> Iterator[ValidationProblem]:
    target = source.target
    yield from _identifier_problems(source.metric, f"{path}.metric")
    yield from target_problems(target, f"{path}.target")
    if target.value is None and target.average_value is None:
        yield required(f"{path}.target.averageValue", "must set either a target value for metric or a per-pod target")
    if target.value is not None and target.average_value is not None:
        yield forbidden(f"{path}.target.value", "may not set both a target value for metric and a per-pod target")
    if source.fallback is not None:
        yield from fallback_problems(source.fallback, f"{path}.fallback", rules.fallback_floor_seconds)


def _pods_problems(source: PodsSource, path: str) -> Iterator[ValidationProblem]:
    yield from _identifier_problems(source.metric, f"{path}.metric")
    yield from target_problems(source.target, f"{path}.target")
    if source.target.average_value is None:
        yield required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _identifier_problems(metric: MetricIdentifier, path: str) -> Iterator[ValidationProblem]:
    if not metric.name:
        yield required(f"{path}.name", "must specify a metric name")
    for detail in path_segment_problems(metric.name):
        yield invalid(f"{path}.name", metric.name, detail)

"""Validates spec.metrics: types, sources, targets and fallbacks."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from autoscaler.defaults import MAX_FAILURE_DURATION_SECONDS
from autoscaler.types.record import Record
from autoscaler.types.spec import (
    AVERAGE_VALUE,
    CONTAINER_RESOURCE,
    EXTERNAL,
    OBJECT,
    PODS,
    RESOURCE,
    STATIC,
    USE_MAX,
    USE_MIN,
    UTILIZATION,
    VALUE,
    ContainerResourceSource,
    ExternalSource,
    Fallback,
    Metric,
    MetricTarget,
    ObjectSource,
    PodsSource,
    ResourceSource,
)
from autoscaler.validation.problem import (
    EnumValue,
    ValidationProblem,
    forbidden,
    invalid,
    name_problems,
    not_supported,
    required,
)
from autoscaler.validation.reference import ApiVersionRule, reference_problems
from autoscaler.values.names import container_resource_problems, dns_label_problems, path_segment_problems

MetricSource: TypeAlias = ObjectSource | ExternalSource | PodsSource | ResourceSource | ContainerResourceSource

FIELD_OF: Final = {
    OBJECT: "object",
    EXTERNAL: "external",
    PODS: "pods",
    RESOURCE: "resource",
    CONTAINER_RESOURCE: "containerResource",
}
"""The key of each type's source, in the order of upstream's checks."""

_STRATEGIES: Final = (STATIC, USE_MAX, USE_MIN)
_TARGET_TYPES: Final = (UTILIZATION, VALUE, AVERAGE_VALUE)


class MetricRules(Record):
    """Parameters of the validation of metrics."""

    described_object: ApiVersionRule
    fallback_floor_seconds: int
    stored_durations: frozenset[int] = frozenset()
    """Values of failureDurationSeconds that the stored object already has: an update may keep them."""


def metrics_problems(
    metrics: tuple[Metric, ...], *, min_replicas: int | None, rules: MetricRules
) -> Iterator[ValidationProblem]:
    """Yield the problems of each metric and of all metrics together."""
    for index, metric in enumerate(metrics):
        yield from _metric_problems(metric, f"spec.metrics[{index}]", rules)
    if min_replicas == 0 and not any(metric.type in {OBJECT, EXTERNAL} for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden("spec.metrics", detail)


def sources_of(metric: Metric) -> dict[str, MetricSource]:
    """Return the sources that are set, by field name, in the order of upstream's checks."""
    sources = (metric.object, metric.external, metric.pods, metric.resource, metric.container_resource)
    return {field: source for field, source in zip(FIELD_OF.values(), sources, strict=True) if source is not None}


def _metric_problems(metric: Metric, path: str, rules: MetricRules) -> Iterator[ValidationProblem]:
    if not metric.type:
        yield required(f"{path}.type", "must specify a metric source type")
    if metric.type not in FIELD_OF:
        yield not_supported(f"{path}.type", metric.type, FIELD_OF)
    sources = sources_of(metric)
    for field, source in list(sources.items())[:1]:  # as upstream: of several sources, only the first is validated
        yield from _source_problems(source, f"{path}.{field}", rules)
    expected = FIELD_OF.get(metric.type)
    if expected is None:
        yield not_supported(f"{path}.type", metric.type, FIELD_OF)  # as upstream, a second time
    elif expected not in sources:
        yield required(f"{path}.{expected}", "must populate information for the given metric source")
    if len(sources) > 1:
        for field in sorted(sources):
            if field != expected:
                yield forbidden(f"{path}.{field}", "must populate the given metric source only")


def _source_problems(source: MetricSource, path: str, rules: MetricRules) -> Iterator[ValidationProblem]:
    match source:
        case ObjectSource():
            yield from reference_problems(source.described_object, f"{path}.describedObject", rules.described_object)
        case ResourceSource() if not source.name:
            yield required(f"{path}.name", "must specify a resource name")
        case ContainerResourceSource():
            resource, missing = EnumValue(source.name), "must specify a resource name"
            yield from name_problems(f"{path}.name", resource, container_resource_problems, missing)
            container, missing = source.container, "must specify a container"
            yield from name_problems(f"{path}.container", container, dns_label_problems, missing)
        case _:
            pass
    if isinstance(source, ObjectSource | ExternalSource | PodsSource):
        name = source.metric.name
        yield from name_problems(f"{path}.metric.name", name, path_segment_problems, "must specify a metric name")
    yield from _target_problems(source.target, f"{path}.target")
    yield from _target_value_problems(source, f"{path}.target")
    if isinstance(source, ExternalSource) and source.fallback is not None:
        yield from _fallback_problems(source.fallback, f"{path}.fallback", rules)


def _target_problems(target: MetricTarget, path: str) -> Iterator[ValidationProblem]:
    if not target.type:
        yield required(f"{path}.type", "must specify a metric target type")
    if target.type not in _TARGET_TYPES:
        yield invalid(f"{path}.type", EnumValue(target.type), "must be either Utilization, Value, or AverageValue")
    if target.value is not None and target.value.sign() != 1:
        yield invalid(f"{path}.value", target.value, "must be positive")
    if target.average_value is not None and target.average_value.sign() != 1:
        yield invalid(f"{path}.averageValue", target.average_value, "must be positive")
    if target.average_utilization is not None and target.average_utilization < 1:
        yield invalid(f"{path}.averageUtilization", target.average_utilization, "must be greater than 0")


def _target_value_problems(source: MetricSource, path: str) -> Iterator[ValidationProblem]:
    """Yield a problem if the target has none of the values that the source can use, or contradictory ones."""
    has_average, has_value = source.target.average_value is not None, source.target.value is not None
    has_utilization = source.target.average_utilization is not None
    match source:
        case ObjectSource():
            if not has_value and not has_average:
                yield required(f"{path}.averageValue", "must set either a target value or averageValue")
        case ExternalSource():
            if not has_value and not has_average:
                yield required(f"{path}.averageValue", "must set either a target value for metric or a per-pod target")
            if has_value and has_average:
                yield forbidden(f"{path}.value", "may not set both a target value for metric and a per-pod target")
        case PodsSource():
            if not has_average:
                yield required(f"{path}.averageValue", "must specify a positive target averageValue")
        case _:
            if not has_utilization and not has_average:
                detail = "must set either a target raw value or a target utilization"
                yield required(f"{path}.averageUtilization", detail)
            if has_utilization and has_average:
                yield forbidden(f"{path}.averageValue", "may not set both a target raw value and a target utilization")


def _fallback_problems(fallback: Fallback, path: str, rules: MetricRules) -> Iterator[ValidationProblem]:
    """Yield the problems of a fallback; `advice` warns about replicas outside of the bounds, which apply anyway."""
    seconds, floor_seconds = fallback.failure_duration_seconds, rules.fallback_floor_seconds
    if seconds is not None and seconds not in rules.stored_durations:
        field = f"{path}.failureDurationSeconds"
        if seconds < floor_seconds:
            yield invalid(field, seconds, f"must be greater than or equal to {floor_seconds}")
        if seconds > MAX_FAILURE_DURATION_SECONDS:
            yield invalid(field, seconds, f"must be less than or equal to {MAX_FAILURE_DURATION_SECONDS}")
    if fallback.replicas is None:
        yield required(f"{path}.replicas", "must specify the replicas to propose while the metric cannot be read")
    elif fallback.replicas < 1:
        yield invalid(f"{path}.replicas", fallback.replicas, "must be greater than or equal to 1")
    if fallback.strategy is not None and fallback.strategy not in _STRATEGIES:
        yield not_supported(f"{path}.strategy", fallback.strategy, _STRATEGIES)

"""Warnings about specs that are valid but probably not intended."""

from collections.abc import Iterator

from autoscaler.defaults import with_defaults
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.record import Record
from autoscaler.types.spec import (
    AVERAGE_VALUE,
    OBJECT,
    PERCENT_POLICY,
    SELECT_MAX,
    SELECT_MIN,
    UTILIZATION,
    VALUE,
    ExternalSource,
    Metric,
    MetricIdentifier,
    MetricTarget,
    ObjectSource,
    PodsSource,
    Spec,
)
from autoscaler.validation.metrics import sources_of
from autoscaler.values.selector import SelectorError, from_label_selector


class Advice(Record):
    """A warning about a field."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def warnings(autoscaler: Autoscaler) -> tuple[Advice, ...]:
    spec = with_defaults(autoscaler.spec)
    return (*_metrics_advice(spec), *_scale_from_zero_advice(spec))


def _metrics_advice(spec: Spec) -> Iterator[Advice]:
    for index, metric in enumerate(spec.metrics or ()):
        path = f"spec.metrics[{index}]"
        yield from _fallback_advice(metric, f"{path}.external.fallback", spec)
        for field, source in sources_of(metric).items():
            yield from _target_advice(metric, source.target, f"{path}.{field}.target")
            if isinstance(source, ObjectSource | ExternalSource | PodsSource):
                yield from _selector_advice(source.metric, f"{path}.{field}.metric.selector")


def _fallback_advice(metric: Metric, path: str, spec: Spec) -> Iterator[Advice]:
    if metric.external is None or metric.external.fallback is None or metric.external.fallback.replicas is None:
        return
    replicas, minimum, maximum = metric.external.fallback.replicas, spec.min_replicas or 0, spec.max_replicas
    if replicas > maximum:
        yield Advice(f"{path}.replicas", f"{replicas} is more than maxReplicas: {maximum} is used")
    elif replicas < minimum:
        yield Advice(f"{path}.replicas", f"{replicas} is less than minReplicas: {minimum} is used")


def _target_advice(metric: Metric, target: MetricTarget, path: str) -> Iterator[Advice]:
    values = {
        UTILIZATION: ("averageUtilization", target.average_utilization),
        VALUE: ("value", target.value),
        AVERAGE_VALUE: ("averageValue", target.average_value),
    }
    named, named_value = values.get(target.type, ("", ""))
    if named_value is not None:
        return
    present = next((field for field, value in values.values() if value is not None), None)
    if present is None:
        return
    if metric.type == OBJECT:
        yield Advice(path, f"type {target.type} requires {named}, which is not set: the metric cannot be read")
    else:
        yield Advice(path, f"type is {target.type}, but {present} is set instead of {named}: {present} is used")


def _selector_advice(identifier: MetricIdentifier, path: str) -> Iterator[Advice]:
    try:
        from_label_selector(identifier.selector)
    except SelectorError as error:
        yield Advice(path, f"invalid selector, the metric cannot be read: {error}")


def _scale_from_zero_advice(spec: Spec) -> Iterator[Advice]:
    """Warn if the scale-up policies are percentages only: a percentage of zero replicas is zero."""
    rules = spec.behavior and spec.behavior.scale_up
    if spec.min_replicas != 0 or not rules or not rules.policies:
        return
    percent = [policy.type == PERCENT_POLICY for policy in rules.policies]
    if (rules.select_policy == SELECT_MAX and all(percent)) or (rules.select_policy == SELECT_MIN and any(percent)):
        yield Advice(
            "spec.behavior.scaleUp.policies",
            "a percentage of zero replicas is zero, so with minReplicas 0 the target cannot scale up from zero: add a"
            " policy of type Pods and set selectPolicy to Max",
        )

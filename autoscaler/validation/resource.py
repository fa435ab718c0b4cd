"""Validates Resource and ContainerResource metrics."""

from collections.abc import Iterator

from autoscaler.types.spec import ContainerResourceSource, MetricTarget, ResourceSource
from autoscaler.validation.problem import EnumValue, ValidationProblem, forbidden, invalid, required
from autoscaler.validation.target import target_problems
from autoscaler.values.names import container_resource_problems as container_resource_name_problems
from autoscaler.values.names import dns_label_problems


def resource_problems(source: ResourceSource, path: str) -> Iterator[ValidationProblem]:
    """Yield the problems of a Resource metric; its name is not restricted."""
    if not source.name:
        yield required(f"{path}.name", "must specify a resource name")
    yield from _resource_target_problems(source.target, f"{path}.target")


def container_resource_problems(source: ContainerResourceSource, path: str) -> Iterator[ValidationProblem]:
    """Yield the problems of a ContainerResource metric."""
    if source.name:
        for detail in container_resource_name_problems(source.name):
            yield invalid(f"{path}.name", EnumValue(source.name), detail)
    else:
        yield required(f"{path}.name", "must specify a resource name")
    if source.container:
        for detail in dns_label_problems(source.container):
            yield invalid(f"{path}.container", source.container, detail)
    else:
        yield required(f"{path}.container", "must specify a container")
    yield from _resource_target_problems(source.target, f"{path}.target")


def _resource_target_problems(target: MetricTarget, path: str) -> Iterator[ValidationProblem]:
    yield from target_problems(target, path)
    if target.average_utilization is None and target.average_value is None:
        yield required(f"{path}.averageUtilization", "must set either a target raw value or a target utilization")
    if target.average_utilization is not None and target.average_value is not None:
        yield forbidden(f"{path}.averageValue", "may not set both a target raw value and a target utilization")

"""The budget of a namespace: which of its ``ExternalMetric`` objects are in force."""

from collections.abc import Iterator, Sequence

from adapter.config.model import TenantLimits
from adapter.custom_resources.watched_object import ExternalMetricObject
from adapter.decoding.problem import Problem

_REMEDY = "delete or shorten objects, or ask the operator of the cluster to raise the limit"


def within_budget(
    objects: Sequence[ExternalMetricObject], limits: TenantLimits
) -> Iterator[tuple[ExternalMetricObject, Problem | None]]:
    """Yield the objects of a namespace, oldest first, with the problem of each one that exceeds the budget.

    An object without a spec uses nothing of the budget.
    """
    count = size = 0
    for metric_object in objects:
        needed = metric_object.spec_size
        problem = None
        if needed and count >= limits.max_objects:
            problem = _objects_problem(limits.max_objects)
        elif size + needed > limits.max_bytes:
            problem = _bytes_problem(limits.max_bytes, size, needed)
        elif needed:
            count, size = count + 1, size + needed
        yield metric_object, problem


def _objects_problem(limit: int) -> Problem:
    message = (
        f"not in force: {limit} older ExternalMetrics of the namespace are, and tenantLimits.maxObjects is {limit}"
    )
    return Problem("", message, hint=_REMEDY)


def _bytes_problem(limit: int, used: int, needed: int) -> Problem:
    # A percentage seldom changes. With exact numbers, each change of an object would change the status of many others.
    message = (
        f"not in force: the spec has {needed} bytes, tenantLimits.maxBytes is {limit}, and older ExternalMetrics of the"
        f" namespace use {100 * used // limit}% of it"
    )
    return Problem("", message, hint=_REMEDY)

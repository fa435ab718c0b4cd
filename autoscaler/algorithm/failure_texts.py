"""Texts of failures in the status.

The text of an error may differ in every reconcile, as by a duration, a port or the id of a request, although its cause
is the same. The class of the failure is in ``status.state``, which does not have the text.
"""

from msgspec.structs import replace

from autoscaler.algorithm.conditions import FALLBACK_ACTIVE
from autoscaler.types.status import Condition, MetricStatus, Status


def differs_only_in_failure_texts(status: Status, stored: Status) -> bool:
    """Return whether the status would be equivalent to the stored one if the texts of failures were equal."""
    return _without_texts(status).is_equivalent_to(_without_texts(stored))


def _without_texts(status: Status) -> Status:
    conditions = tuple(replace(each, message="") if _has_failure(each) else each for each in status.conditions)
    metrics = status.current_metrics and tuple(map(_without_text, status.current_metrics))
    return replace(status, conditions=conditions, current_metrics=metrics)


def _has_failure(condition: Condition) -> bool:
    return condition.type == FALLBACK_ACTIVE or condition.reason.startswith("Failed")


def _without_text(metric: MetricStatus) -> MetricStatus:
    if metric.external is None or metric.external.failure_message is None:
        return metric
    return replace(metric, external=replace(metric.external, failure_message=""))

"""The content of the status of ``ExternalMetric`` objects. Pure code.

A status contains only what the tenant may read: nothing in it depends on series of other namespaces.
"""

from datetime import datetime
from typing import Any, Final

from adapter.custom_resources.rejection import BUDGET_EXCEEDED
from adapter.custom_resources.watched_object import ExternalMetricObject
from adapter.errors import OverBudget
from adapter.metrics.read_history import ReadRecord
from adapter.metrics.reader import ReadTrace
from autoscaler.kube.client import Json
from autoscaler.types.observation import FailureClass
from autoscaler.types.status import condition_of
from autoscaler.values.timestamps import format_rfc3339

IDLE: Final = "Idle"
_MAX_MESSAGE_LENGTH: Final = 1024


def status_of_trace(metric_object: ExternalMetricObject, now: datetime, trace: ReadTrace) -> Json:
    """Return the status by a read with the empty selector."""
    time = format_rfc3339(now)
    if trace.error is None:
        ready = with_condition(metric_object, now, "True", "Readable", "the metric can be read")
        return {
            **ready,
            "lastValue": _quantity(sum(sample.milli for sample in trace.samples)),
            "lastReadTime": time,
            **_query_status(trace),
        }
    message = trace.error.message[:_MAX_MESSAGE_LENGTH]
    not_ready = with_condition(metric_object, now, "False", _reason(trace.error.failure), message)
    return {**not_ready, "lastError": message, "lastErrorTime": time, **_query_status(trace)}


def status_of_record(metric_object: ExternalMetricObject, now: datetime, record: ReadRecord) -> Json:
    """Return the status by the last read. It is for a query with the selector of the read, unlike a snapshot."""
    time = format_rfc3339(record.last_read_time or now)
    if not record.failures:
        ready = with_condition(metric_object, now, "True", "Readable", "the metric can be read")
        value = _quantity(record.last_good_milli or 0)
        return {**ready, "lastValue": value, "lastReadTime": time, "series": record.series_matched}
    message = record.message[:_MAX_MESSAGE_LENGTH]
    not_ready = with_condition(metric_object, now, "False", _reason(record.failure), message)
    return {**not_ready, "lastError": message, "lastErrorTime": time}


def with_condition(metric_object: ExternalMetricObject, now: datetime, status: str, reason: str, message: str) -> Json:
    """Return a status with the Ready condition."""
    before: Any = condition_of(metric_object.status, "Ready") or {}
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    condition = {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message[:_MAX_MESSAGE_LENGTH],
        "lastTransitionTime": since or format_rfc3339(now),
        "observedGeneration": metric_object.generation,
    }
    return {"observedGeneration": metric_object.generation, "conditions": [condition]}


def time_of_last_read(status: Json) -> str:
    """Return the time of the last read, successful or not."""
    return max(status.get("lastReadTime") or "", status.get("lastErrorTime") or "")


def _reason(failure: FailureClass | None) -> str:
    if failure is OverBudget.failure:
        return BUDGET_EXCEEDED  # the same reason as of an object that exceeds the budget
    return "".join(word.capitalize() for word in failure.value.split()) if failure else "NotReadable"


def _quantity(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def _query_status(trace: ReadTrace) -> Json:
    """Return the number of series that the tenant may read, and the duration of the query."""
    if trace.result is None or trace.rule is None:
        return {}
    series = {"series": len(trace.matched)}
    if trace.rule.namespacing.label:  # the response contained series of other namespaces; they determine the duration
        return series
    return {**series, "latencyMilliseconds": round(trace.result.duration.total_seconds() * 1000)}

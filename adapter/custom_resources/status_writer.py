"""Writes the status of ``ExternalMetric`` objects: the Ready condition, the last value and the last error.

A status contains only what the tenant may read: nothing in it depends on series of other namespaces.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from adapter.custom_resources.external_metric import GROUP_VERSION, PLURAL
from adapter.custom_resources.loop_share import LoopShare
from adapter.custom_resources.rejection import BUDGET_EXCEEDED, REJECTION_REASONS
from adapter.custom_resources.watched_object import ExternalMetricObject
from adapter.custom_resources.watcher import ExternalMetricWatcher
from adapter.errors import AdapterError, OverBudget
from adapter.metrics.reader import MetricReader, ReadTrace
from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError, NotFound
from autoscaler.kube.paths import api_path
from autoscaler.types.status import condition_of
from autoscaler.values.selector import Selector
from autoscaler.values.timestamps import format_rfc3339

_log = logging.getLogger(__name__)
_EVERYTHING: Final = Selector()
_MAX_MESSAGE_LENGTH: Final = 1024
_MAX_CONCURRENT_NAMESPACES: Final = 32
_VOLATILE_FIELDS: Final = frozenset({"lastReadTime", "lastErrorTime", "latencyMilliseconds"})
_URGENT_FIELDS: Final = ("status", "reason", "observedGeneration")


class ExternalMetricStatusWriter:
    """Writes a changed Ready condition at the next check, and other changes once per ``value_interval``."""

    def __init__(
        self,
        client: KubeClient,
        objects: ExternalMetricWatcher,
        reader: MetricReader,
        clock: Callable[[], datetime],
        check_interval: timedelta = timedelta(seconds=5),
        value_interval: timedelta = timedelta(minutes=1),
    ) -> None:
        self._client = client
        self._objects = objects
        self._reader = reader
        self._clock = clock
        self._check_interval = check_interval
        self._value_interval = value_interval
        self._concurrency = asyncio.Semaphore(_MAX_CONCURRENT_NAMESPACES)
        self._share = LoopShare()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The writes in progress, by namespace: slow queries of one tenant do not delay the status of others."""

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(self._check_interval.total_seconds())
                await self._start_writes(group)

    async def write_changes(self) -> None:
        """Write every status that differs from the one in the cluster."""
        async with asyncio.TaskGroup() as group:
            await self._start_writes(group)

    async def _start_writes(self, group: asyncio.TaskGroup) -> None:
        """Start a task for each namespace with changes, unless the previous one is still running."""
        self._share.start()
        changed: dict[str, list[ExternalMetricObject]] = {}
        for metric_object in tuple(self._objects.store):
            status = self._current_status(metric_object)
            if status is None or self._is_due(metric_object.status, status):
                changed.setdefault(metric_object.namespace, []).append(metric_object)
            await self._share.step()
        self._tasks = {namespace: task for namespace, task in self._tasks.items() if not task.done()}
        for namespace in changed.keys() - self._tasks.keys():
            self._tasks[namespace] = group.create_task(self._write_all(changed[namespace]))

    async def _write_all(self, metric_objects: list[ExternalMetricObject]) -> None:
        for metric_object in metric_objects:
            async with self._concurrency:
                try:
                    await self._write_changed(metric_object)
                except Exception:  # noqa: BLE001 - a status must not end the writer, whatever it contains
                    _log.exception("ExternalMetric status not written", extra={"externalmetric": metric_object.key})

    async def _write_changed(self, metric_object: ExternalMetricObject) -> None:
        status = self._current_status(metric_object)
        rule = self._objects.rules.get(metric_object.key)
        if status is None and rule is not None:
            trace = await self._reader.read(metric_object.namespace, rule.name, _EVERYTHING)
            status = self._status_of(metric_object, trace)
        if status is not None and self._is_due(metric_object.status, status):
            await self._write(metric_object, status)

    def _current_status(self, metric_object: ExternalMetricObject) -> Json | None:
        """Return the status without reading from a backend; None if the metric must be read first."""
        rejection = self._objects.rejections.get(metric_object.key)
        if rejection is not None:
            return self._with_condition(metric_object, "False", rejection.reason, rejection.message)
        rule = self._objects.rules.get(metric_object.key)
        if rule is None:
            return metric_object.status  # not validated yet
        trace = self._reader.peek(metric_object.namespace, rule.name, _EVERYTHING)
        if trace.result is not None or trace.error is not None:
            return self._status_of(metric_object, trace)
        reason = (condition_of(metric_object.status, "Ready") or {}).get("reason")
        if metric_object.status.get("observedGeneration") != metric_object.generation or reason in REJECTION_REASONS:
            return None
        return metric_object.status  # no caller reads the metric; a read for the status would keep it refreshed

    def _status_of(self, metric_object: ExternalMetricObject, trace: ReadTrace) -> Json:
        now = format_rfc3339(self._clock())
        if trace.error is None:
            ready = self._with_condition(metric_object, "True", "Readable", "the metric can be read")
            return {**ready, "lastValue": _value(trace), "lastReadTime": now, **_query_status(trace)}
        message = trace.error.message[:_MAX_MESSAGE_LENGTH]
        not_ready = self._with_condition(metric_object, "False", _reason(trace.error), message)
        return {**not_ready, "lastError": message, "lastErrorTime": now, **_query_status(trace)}

    def _with_condition(self, metric_object: ExternalMetricObject, status: str, reason: str, message: str) -> Json:
        before: Any = condition_of(metric_object.status, "Ready") or {}
        since = before.get("lastTransitionTime") if before.get("status") == status else None
        condition = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message[:_MAX_MESSAGE_LENGTH],
            "lastTransitionTime": since or format_rfc3339(self._clock()),
            "observedGeneration": metric_object.generation,
        }
        return {"observedGeneration": metric_object.generation, "conditions": [condition]}

    def _is_due(self, before: Json, after: Json) -> bool:
        if _urgent(before) != _urgent(after):
            return True
        written = max(before.get("lastReadTime") or "", before.get("lastErrorTime") or "")
        # The patch keeps fields that the new status does not have, such as lastError: they are not a difference.
        is_different = any(before.get(key) != after[key] for key in after.keys() - _VOLATILE_FIELDS)
        return is_different and written <= format_rfc3339(self._clock() - self._value_interval)

    async def _write(self, metric_object: ExternalMetricObject, status: Json) -> None:
        below = api_path("namespaces", metric_object.namespace, PLURAL, metric_object.name, "status")
        path = f"/apis/{GROUP_VERSION}{below}"
        try:
            self._objects.apply_response(await self._client.patch(path, {"status": status}))
        except NotFound:
            return  # deleted meanwhile
        except KubeError as error:
            _log.warning(
                "ExternalMetric status not written", extra={"externalmetric": metric_object.key, "error": str(error)}
            )


def _urgent(status: Json) -> tuple[object, ...]:
    """Return the parts of the Ready condition whose change is written at once, unlike that of a message."""
    condition = condition_of(status, "Ready") or {}
    return tuple(condition.get(field) for field in _URGENT_FIELDS)


def _reason(error: AdapterError) -> str:
    if isinstance(error, OverBudget):
        return BUDGET_EXCEEDED  # the same reason as of an object that exceeds the budget
    return "".join(word.capitalize() for word in error.failure.value.split()) if error.failure else "NotReadable"


def _value(trace: ReadTrace) -> str:
    milli = sum(sample.milli for sample in trace.samples)
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def _query_status(trace: ReadTrace) -> Json:
    """Return the number of series that the tenant may read, and the duration of the query."""
    if trace.result is None or trace.rule is None:
        return {}
    series = {"series": len(trace.matched)}
    if trace.rule.namespacing.label:  # the response contained series of other namespaces; they determine the duration
        return series
    return {**series, "latencyMilliseconds": round(trace.result.duration.total_seconds() * 1000)}

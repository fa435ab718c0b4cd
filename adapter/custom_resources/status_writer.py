"""Writes the status of ``ExternalMetric`` objects: the Ready condition, the last value and the last error.

Every replica writes what its own reads result in, and renews the time of the last read while the metric is read. A
status that no replica renewed is that of a metric without callers: its condition becomes ``Unknown``, with the time of
the last read. No query is sent for it.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from adapter.custom_resources.external_metric import GROUP_VERSION, PLURAL
from adapter.custom_resources.loop_share import LoopShare
from adapter.custom_resources.metric_status import (
    IDLE,
    status_of_record,
    status_of_trace,
    time_of_last_read,
    with_condition,
)
from adapter.custom_resources.rejection import REJECTION_REASONS
from adapter.custom_resources.watched_object import ExternalMetricObject
from adapter.custom_resources.watcher import ExternalMetricWatcher
from adapter.metrics.read_history import ReadRecord
from adapter.metrics.reader import MetricReader
from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError, NotFound
from autoscaler.kube.paths import api_path
from autoscaler.types.status import condition_of
from autoscaler.values.selector import Selector
from autoscaler.values.timestamps import format_rfc3339

_log = logging.getLogger(__name__)
_EVERYTHING: Final = Selector()
_MAX_CONCURRENT_NAMESPACES: Final = 32
_VOLATILE_FIELDS: Final = frozenset({"lastReadTime", "lastErrorTime", "latencyMilliseconds"})
_URGENT_FIELDS: Final = ("status", "reason", "observedGeneration")
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_MIN_RENEWAL: Final = timedelta(minutes=1)
_RENEWAL_PER_OBJECT: Final = timedelta(milliseconds=100)
"""The interval of renewals for each object, so that all objects together cause at most ten renewals per second."""

_IDLE_RENEWALS: Final = 2.5
"""Intervals of renewals without a renewal after which a metric counts as not read."""


class ExternalMetricStatusWriter:
    """Writes a changed Ready condition at the next check, and other changes once per ``value_interval``.

    An unchanged status is renewed once a minute, or less often if there are more than 600 objects.
    """

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
        self._renewal_interval = _MIN_RENEWAL
        self._last_reads: dict[tuple[str, str], ReadRecord] = {}
        """The last read of each metric, by namespace and metric."""

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
        metric_objects = tuple(self._objects.store)
        self._renewal_interval = max(_MIN_RENEWAL, len(metric_objects) * _RENEWAL_PER_OBJECT)
        self._last_reads = {}
        for key, record in self._reader.history if metric_objects else ():
            before = self._last_reads.setdefault(key[:2], record)
            if (record.last_read_time or _NEVER) > (before.last_read_time or _NEVER):
                self._last_reads[key[:2]] = record
        for metric_object in metric_objects:
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
            status = status_of_trace(metric_object, self._clock(), trace)
        if status is not None and self._is_due(metric_object.status, status):
            await self._write(metric_object, status)

    def _current_status(self, metric_object: ExternalMetricObject) -> Json | None:
        """Return the status without reading from a backend; None if the metric must be read first."""
        rejection = self._objects.rejections.get(metric_object.key)
        if rejection is not None:
            return with_condition(metric_object, self._clock(), "False", rejection.reason, rejection.message)
        rule = self._objects.rules.get(metric_object.key)
        if rule is None:
            return metric_object.status  # not validated yet
        trace = self._reader.peek(metric_object.namespace, rule.name, _EVERYTHING)
        if trace.result is not None or trace.error is not None:
            return status_of_trace(metric_object, self._clock(), trace)
        reason = (condition_of(metric_object.status, "Ready") or {}).get("reason")
        if metric_object.status.get("observedGeneration") != metric_object.generation or reason in REJECTION_REASONS:
            return None
        record = self._last_reads.get((metric_object.namespace, rule.name)) if rule.is_template else None
        if record is not None and self._is_newer(record, metric_object.status):
            return status_of_record(metric_object, self._clock(), record)
        return self._status_without_reads(metric_object)

    @property
    def _idle_after(self) -> timedelta:
        return self._renewal_interval * _IDLE_RENEWALS

    def _is_newer(self, record: ReadRecord, status: Json) -> bool:
        """Return whether a read is recent and not older than one of another replica."""
        time = record.last_read_time or _NEVER
        return self._clock() - time < self._idle_after and format_rfc3339(time) >= time_of_last_read(status)

    def _status_without_reads(self, metric_object: ExternalMetricObject) -> Json:
        """Return the status of a metric that this replica does not read; other replicas may read it."""
        before: Any = condition_of(metric_object.status, "Ready") or {}
        last, now = time_of_last_read(metric_object.status), self._clock()
        is_renewed = format_rfc3339(now - self._idle_after) < last <= format_rfc3339(now)
        if is_renewed or before.get("reason") == IDLE:
            return metric_object.status
        result = "succeeded" if before.get("status") == "True" else f"failed: {before.get('message', '')}"
        message = f"not read since {last}; the last read {result}" if last else "not read"
        return with_condition(metric_object, self._clock(), "Unknown", IDLE, message)

    def _is_due(self, before: Json, after: Json) -> bool:
        if _urgent(before) != _urgent(after):
            return True
        written = time_of_last_read(before)
        # The patch keeps fields that the new status does not have, such as lastError: they are not a difference.
        is_different = any(before.get(key) != after[key] for key in after.keys() - _VOLATILE_FIELDS)
        now = self._clock()
        is_recent = format_rfc3339(now - self._value_interval) < written <= format_rfc3339(now)
        if is_different:
            return not is_recent  # also if it was written by a process whose clock was ahead
        return written <= format_rfc3339(now - self._renewal_interval) < time_of_last_read(after)

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

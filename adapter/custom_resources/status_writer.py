"""Writes the status of ``ExternalMetric`` objects: the Ready condition, the last value and the last error."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from adapter.custom_resources.external_metric import GROUP_VERSION, PLURAL
from adapter.custom_resources.watcher import ExternalMetricObject, ExternalMetricWatcher
from adapter.metrics.fetcher import FetchFailure
from adapter.metrics.reader import MetricReader, ReadTrace
from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError, NotFound
from autoscaler.types.status import condition_of
from autoscaler.values.selector import Selector
from autoscaler.values.timestamps import format_rfc3339

_log = logging.getLogger(__name__)
_EVERYTHING: Final = Selector()
_MAX_MESSAGE_LENGTH: Final = 1024
_VOLATILE_FIELDS: Final = frozenset({"lastReadTime", "lastErrorTime", "latencyMilliseconds"})


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

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._check_interval.total_seconds())
            await self.write_changes()

    async def write_changes(self) -> None:
        """Write every status that differs from the one in the cluster."""
        for metric_object in tuple(self._objects.store):
            status = await self._status(metric_object)
            if self._is_due(metric_object.status, status):
                await self._write(metric_object, status)

    async def _status(self, metric_object: ExternalMetricObject) -> Json:
        problems = self._objects.problems.get(metric_object.key)
        if problems:
            return self._with_condition(metric_object, "False", "Invalid", "; ".join(map(str, problems)))
        rule = self._objects.rules.get(metric_object.key)
        if rule is None:
            return metric_object.status  # not validated yet
        trace = self._reader.peek(metric_object.namespace, rule.name, _EVERYTHING)
        if trace.result is None and trace.error is None:
            if metric_object.status.get("observedGeneration") == metric_object.generation:
                return (
                    metric_object.status
                )  # no caller reads the metric; a read for the status would keep its query refreshed
            trace = await self._reader.read(metric_object.namespace, rule.name, _EVERYTHING)
        now = format_rfc3339(self._clock())
        if trace.error is None:
            ready = self._with_condition(metric_object, "True", "Readable", "the metric can be read")
            return {**ready, "lastValue": _value(trace), "lastReadTime": now, **_query_status(trace)}
        failure, message = trace.error.failure, trace.error.message
        reason = "".join(word.capitalize() for word in failure.value.split()) if failure else "NotReadable"
        not_ready = self._with_condition(metric_object, "False", reason, message)
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
        if before.get("conditions") != after.get("conditions"):
            return True
        written = max(before.get("lastReadTime") or "", before.get("lastErrorTime") or "")
        # The patch keeps fields that the new status does not have, such as lastError: they are not a difference.
        is_different = any(before.get(key) != after[key] for key in after.keys() - _VOLATILE_FIELDS)
        return is_different and written <= format_rfc3339(self._clock() - self._value_interval)

    async def _write(self, metric_object: ExternalMetricObject, status: Json) -> None:
        path = f"/apis/{GROUP_VERSION}/namespaces/{metric_object.namespace}/{PLURAL}/{metric_object.name}/status"
        try:
            self._objects.store.apply_response(await self._client.patch(path, {"status": status}))
        except NotFound:
            return  # deleted meanwhile
        except KubeError as error:
            _log.warning(
                "ExternalMetric status not written", extra={"externalmetric": metric_object.key, "error": str(error)}
            )


def _value(trace: ReadTrace) -> str:
    milli = sum(sample.milli for sample in trace.samples)
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def _query_status(trace: ReadTrace) -> Json:
    if trace.result is None:
        return {}
    series = 0 if isinstance(trace.result, FetchFailure) else len(trace.result.series)
    return {"series": series, "latencyMilliseconds": round(trace.result.duration.total_seconds() * 1000)}

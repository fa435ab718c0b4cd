"""What an ``ExternalMetric`` says about itself: whether it can be read, the last value, and what the backend said."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from adapter.custom_resources.external_metric import GROUP_VERSION, PLURAL
from adapter.custom_resources.watcher import Defined, ExternalMetricObjects
from adapter.metrics.fetcher import Failed
from adapter.metrics.reader import Look, RuleReader
from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError, NotFound
from autoscaler.values.selector import Selector
from autoscaler.wire.encode import print_time

_log = logging.getLogger(__name__)
_EVERYTHING: Final = Selector()
_LONGEST: Final = 1024


class StatusKeeper:
    """Writes statuses: at once when an object begins to work or ceases to, otherwise now and then."""

    def __init__(
        self,
        client: KubeClient,
        objects: ExternalMetricObjects,
        reader: RuleReader,
        clock: Callable[[], datetime],
        every: timedelta = timedelta(seconds=5),
        values_every: timedelta = timedelta(minutes=1),
    ) -> None:
        self._client = client
        self._objects = objects
        self._reader = reader
        self._clock = clock
        self._every = every
        self._values_every = values_every

    async def run(self, may_write: Callable[[], bool] = lambda: True) -> None:
        """Look at all objects now and then, for ever; ``may_write`` says whether this replica is who writes."""
        while True:
            await asyncio.sleep(self._every.total_seconds())
            if may_write():
                await self.look()

    async def look(self) -> None:
        """Write what is not as it was."""
        for each in tuple(self._objects.store):
            status = await self._status(each)
            if self._is_news(each.status, status):
                await self._write(each, status)

    async def _status(self, each: Defined) -> Json:
        problems = self._objects.problems.get(each.key)
        if problems:
            return self._said(each, "False", "Invalid", "; ".join(problems))
        rule = self._objects.rules.get(each.key)
        if rule is None:
            return each.status  # not looked at yet
        look = self._reader.glance(each.namespace, rule.name, _EVERYTHING)
        if look.outcome is None and look.error is None:
            if each.status.get("observedGeneration") == each.generation:
                return each.status  # nobody reads it now, and looking must not be reading
            look = await self._reader.look(each.namespace, rule.name, _EVERYTHING)
        if look.error is None:
            ready = self._said(each, "True", "Readable", "the metric can be read")
            return {**ready, "lastValue": _value(look), "lastReadTime": print_time(self._clock()), **_found(look)}
        reason = "".join(word.capitalize() for word in look.error.failure.value.split()) if look.error.failure else ""
        failed = self._said(each, "False", reason or "NotReadable", look.error.message)
        return {**failed, "lastError": look.error.message, "lastErrorTime": print_time(self._clock()), **_found(look)}

    def _said(self, each: Defined, status: str, reason: str, message: str) -> Json:
        before: Any = next((one for one in each.status.get("conditions") or () if one.get("type") == "Ready"), {})
        since = before.get("lastTransitionTime") if before.get("status") == status else None
        condition = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message[:_LONGEST],
            "lastTransitionTime": since or print_time(self._clock()),
            "observedGeneration": each.generation,
        }
        return {"observedGeneration": each.generation, "conditions": [condition]}

    def _is_news(self, before: Json, after: Json) -> bool:
        if before.get("conditions") != after.get("conditions"):
            return True
        written = max(before.get("lastReadTime") or "", before.get("lastErrorTime") or "")
        due = print_time(self._clock() - self._values_every)
        # What was written before and is not said now, such as the last error, stays: that is no news.
        return written <= due and any(before.get(key) != value for key, value in _without_times(after).items())

    async def _write(self, each: Defined, status: Json) -> None:
        path = f"/apis/{GROUP_VERSION}/namespaces/{each.namespace}/{PLURAL}/{each.name}/status"
        try:
            self._objects.store.learn(await self._client.patch(path, {"status": status}))
        except NotFound:
            return  # gone meanwhile
        except KubeError as error:
            _log.warning("status not written", extra={"externalmetric": each.key, "error": str(error)})


def _value(look: Look) -> str:
    milli = sum(sample.milli for sample in look.samples)
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def _found(look: Look) -> Json:
    if look.outcome is None:
        return {}
    series = 0 if isinstance(look.outcome, Failed) else len(look.outcome.rows)
    return {"series": series, "latencyMilliseconds": round(look.outcome.took.total_seconds() * 1000)}


def _without_times(status: Json) -> Json:
    return {
        key: value
        for key, value in status.items()
        if key not in {"lastReadTime", "lastErrorTime", "latencyMilliseconds"}
    }

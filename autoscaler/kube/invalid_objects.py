"""Objects that cannot be decoded: counted, logged with a rate limit, and treated as if they did not exist."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from autoscaler.kube.metrics import KubeMetrics

log = logging.getLogger(__name__)

_LOG_INTERVAL: Final = 60.0
_MAX_LOGGED: Final = 10
"""Log lines per interval and resource; a tenant can change an object many times a second."""


@dataclass(frozen=True, slots=True)
class InvalidObject:
    """An object that cannot be decoded."""

    key: str
    """``namespace/name``; empty if it is unknown."""

    reason: str
    resource_version: str = ""


class InvalidObjectLog:
    """Counts the invalid objects of a resource and logs them, at most ten a minute."""

    def __init__(self, resource: str, metrics: KubeMetrics) -> None:
        self._resource = resource
        self._counter = metrics.invalid_objects.labels(resource)
        self._since = float("-inf")
        self._logged = 0

    def report(self, invalid: InvalidObject) -> None:
        """Report one invalid object."""
        self._counter.inc()
        now = asyncio.get_running_loop().time()
        if now - self._since >= _LOG_INTERVAL:
            self._since, self._logged = now, 0
        self._logged += 1
        if self._logged <= _MAX_LOGGED:
            fields = {"resource": self._resource, "object": invalid.key or "unknown", "error": invalid.reason}
            log.warning("invalid object skipped", extra=fields)
        elif self._logged == _MAX_LOGGED + 1:
            log.warning("more invalid objects are skipped without a log line", extra={"resource": self._resource})

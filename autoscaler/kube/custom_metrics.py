"""Selects the version of the custom metrics API: the preferred one, if it is supported."""

import asyncio
from datetime import timedelta
from typing import Final

from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import NotFound

GROUP: Final = "custom.metrics.k8s.io"
_SUPPORTED_VERSIONS: Final = ("v1beta2", "v1beta1")
_CACHE_TTL: Final = timedelta(minutes=1)


class CustomMetricsUnavailable(Exception):
    """No supported custom metrics API is registered; the message has upstream's text."""


class CustomMetricsVersion:
    """The served version, cached for one minute."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._root = ""
        self._valid_until = 0.0

    async def root(self) -> str:
        """Return the base path; raise CustomMetricsUnavailable if there is none, a KubeError if discovery fails."""
        now = asyncio.get_running_loop().time()
        if now >= self._valid_until:
            self._root = f"/apis/{GROUP}/{await self._choose()}"
            self._valid_until = now + _CACHE_TTL.total_seconds()
        return self._root

    async def _choose(self) -> str:
        try:
            group = await self._client.get(f"/apis/{GROUP}")
        except NotFound as error:
            raise CustomMetricsUnavailable(f"no custom metrics API ({GROUP}) registered") from error
        preferred = (group.get("preferredVersion") or {}).get("version")
        served = [entry["version"] for entry in group.get("versions") or ()]
        for version in (preferred, *served):
            if version in _SUPPORTED_VERSIONS:
                return str(version)
        raise CustomMetricsUnavailable("no known available metric versions found")

"""Which version of the custom metrics API the cluster serves: the one it prefers, if we speak it."""

import asyncio
from datetime import timedelta
from typing import Final

from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import NotFound

GROUP: Final = "custom.metrics.k8s.io"
_SPOKEN: Final = ("v1beta2", "v1beta1")
_REMEMBER: Final = timedelta(minutes=1)


class NoCustomMetrics(Exception):
    """There is nobody to ask, in upstream's words."""


class CustomMetricsVersion:
    """The version to ask, remembered for a while."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._root = ""
        self._until = 0.0

    async def root(self) -> str:
        """Say where the API is; raise NoCustomMetrics if there is none, a KubeError if that cannot be known."""
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            self._root = f"/apis/{GROUP}/{await self._choose()}"
            self._until = now + _REMEMBER.total_seconds()
        return self._root

    async def _choose(self) -> str:
        try:
            answer = await self._client.get(f"/apis/{GROUP}")
        except NotFound as error:
            raise NoCustomMetrics(f"no custom metrics API ({GROUP}) registered") from error
        preferred = (answer.get("preferredVersion") or {}).get("version")
        served = [one["version"] for one in answer.get("versions") or ()]
        for version in (preferred, *served):
            if version in _SPOKEN:
                return str(version)
        raise NoCustomMetrics("no known available metric versions found")

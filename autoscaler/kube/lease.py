"""Leader election with a Lease: at most one process leads, and it stops before another one can take over.

As in client-go, a lease of another process has expired if it was not *observed* to change for its duration on the
local monotonic clock; clocks of different machines are never compared. The leader counts the renew deadline from
before it sent the last successful renewal, and stops some seconds before the lease expires for others. A process
that was suspended is therefore no longer leader at its next check.

Use a separate KubeClient, so that renewals never queue behind other requests.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import datetime, timedelta
from typing import Final

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError, NotFound
from autoscaler.kube.watch import ListWatch, WatchEvent, list_and_watch
from autoscaler.settings import ControllerOptions
from autoscaler.values.timestamps import format_rfc3339

log = logging.getLogger(__name__)

_KIND: Final = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
_RELEASED_SECONDS: Final = 1
"""The duration of a released lease, as in client-go: other processes can acquire it at once."""

_RELEASE_TIMEOUT: Final = timedelta(seconds=1)
"""Bounds the release, because it delays the shutdown of the process."""


class LeadershipLost(Exception):
    """The lease was not renewed in time; another process may be the leader."""


class LeaderElector:
    """Acquires, renews and releases one Lease on behalf of this process."""

    def __init__(
        self, client: KubeClient, options: ControllerOptions, *, identity: str, clock: Callable[[], datetime]
    ) -> None:
        self.identity = identity
        self._client = client
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{options.lease_namespace}/leases"
        self._name = options.lease_name
        self._clock = clock
        self._options = options
        self._lease: Json | None = None
        self._changed_at = 0.0
        """When the lease was last observed to change."""
        self._leader_until = 0.0
        """Until when no other process can have acquired the lease."""

    @property
    def is_leader(self) -> bool:
        """Whether this process is the leader; checked right before each write."""
        return _now() < self._leader_until

    @property
    def holder(self) -> str:
        """The identity of the observed leader; empty if there is none."""
        return str((self._lease or {}).get("spec", {}).get("holderIdentity") or "")

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Acquire the lease, then run ``work`` while this process is the leader.

        Raises LeadershipLost if the lease is lost, after ``work`` was cancelled and has ended. On cancellation,
        ``work`` is cancelled first and then the lease is released.
        """
        try:
            await self._acquire()
        except asyncio.CancelledError:
            await self._release()  # the lease may have been acquired a moment ago
            raise
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._renew())
        try:
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            await _stop(working)
            lost = renewing.done()
            await _stop(renewing)
            if not lost:
                await self._release()
        if lost:
            raise LeadershipLost(f"{self.identity} did not renew the lease {self._name} in time")

    async def _acquire(self) -> None:
        """Acquire the lease; a watch reports its release at once, otherwise it is checked every retry period."""
        released = asyncio.Event()
        watching = asyncio.ensure_future(self._watch_release(released))
        try:
            while not await self._try_acquire_or_renew():
                released.clear()
                delay = self._options.retry_period.total_seconds() * random.uniform(1, 2.2)  # noqa: S311 - jitter
                with suppress(TimeoutError):
                    async with asyncio.timeout(delay):
                        await released.wait()
        finally:
            await _stop(watching)
        log.info("acquired lease", extra={"lease": self._name, "identity": self.identity})

    async def _watch_release(self, released: asyncio.Event) -> None:
        source = ListWatch(self._collection, field_selector=f"metadata.name={self._name}")
        async with aclosing(list_and_watch(self._client, source)) as items:
            async for item in items:
                if isinstance(item, WatchEvent) and not item.object.get("spec", {}).get("holderIdentity"):
                    released.set()

    async def _renew(self) -> None:
        """Renew the lease every retry period; return when the renew deadline has passed."""
        period, renewed = self._options.retry_period.total_seconds(), True
        while (remaining := self._leader_until - _now()) > 0:
            await asyncio.sleep(min(period if renewed else period / 4, remaining))
            renewed = self._leader_until > _now() and await self._try_acquire_or_renew()
        log.warning(
            "failed to renew lease before the renew deadline", extra={"lease": self._name, "identity": self.identity}
        )

    async def _try_acquire_or_renew(self) -> bool:
        """Try once to acquire or renew the lease, within half of the renew deadline; return whether it succeeded."""
        started = _now()
        try:
            async with asyncio.timeout(self._attempt_timeout()):
                if not await self._acquire_or_renew():
                    return False
        except (KubeError, TimeoutError) as error:
            log.info("failed to acquire or renew lease", extra={"lease": self._name, "error": str(error)})
            return False
        self._leader_until = started + self._options.renew_deadline.total_seconds()
        return True

    def _attempt_timeout(self) -> float:
        half = (self._options.renew_deadline / 2).total_seconds()
        remaining = self._leader_until - _now()
        return min(half, remaining) if remaining > 0 else half

    async def _acquire_or_renew(self) -> bool:
        if not self.is_leader or self._lease is None:
            await self._fetch()
        if self._lease is None:
            body = {"metadata": {"name": self._name}, "spec": self._spec(transitions=0, acquired=None)}
            self._observe(await self._client.create(self._collection, {**_KIND, **body}))
            return True
        if self.holder not in {"", self.identity} and not self._has_expired():
            self._leader_until = 0.0
            return False
        try:
            await self._write(self._lease)
        except KubeError:
            await self._fetch()  # the next attempt needs the current resourceVersion
            raise
        return True

    async def _fetch(self) -> None:
        try:
            self._observe(await self._client.get(f"{self._collection}/{self._name}"))
        except NotFound:
            self._lease = None

    def _observe(self, lease: Json) -> None:
        if self._lease is None or self._lease.get("spec") != lease.get("spec"):
            self._changed_at = _now()
        self._lease = lease

    def _has_expired(self) -> bool:
        spec = (self._lease or {}).get("spec", {})
        duration = spec.get("leaseDurationSeconds") or self._options.lease_duration.total_seconds()
        return _now() >= self._changed_at + float(duration)

    async def _write(self, lease: Json) -> None:
        """Replace the observed version of the lease; any other version causes a Conflict."""
        spec = lease.get("spec") or {}
        is_renewal = self.holder == self.identity
        transitions = int(spec.get("leaseTransitions") or 0) + (0 if is_renewal else 1)
        written = {**lease, "spec": self._spec(transitions, spec.get("acquireTime") if is_renewal else None)}
        self._observe(await self._client.replace(f"{self._collection}/{self._name}", written))

    def _spec(self, transitions: int, acquired: str | None) -> Json:
        now = format_rfc3339(self._clock(), "microseconds")  # the API server requires all six digits
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._options.lease_duration.total_seconds()),
            "acquireTime": acquired or now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    async def _release(self) -> None:
        """Release the lease, so that another process acquires it at once; if that fails, the lease expires."""
        self._leader_until = 0.0
        if self._lease is None or self.holder != self.identity:
            return
        spec = {**self._lease["spec"], "holderIdentity": "", "leaseDurationSeconds": _RELEASED_SECONDS}
        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT.total_seconds()):
                await self._client.replace(f"{self._collection}/{self._name}", {**self._lease, "spec": spec})
        except (KubeError, TimeoutError) as error:
            log.info("failed to release lease", extra={"lease": self._name, "error": str(error)})


async def _stop(task: "asyncio.Future[None]") -> None:
    """Cancel a task and wait until it has ended; retrieve its exception so that asyncio does not log it."""
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()


def _now() -> float:
    return asyncio.get_running_loop().time()

"""Leadership by Lease: of several processes one controls, and it stops before another can begin.

Whether another's lease has run out is judged by how long ago it was *seen* to change, on this process' own clock:
clocks of two machines are never compared. A leader counts its own time from before it sent the last renewal that
succeeded, and considers itself no leader some seconds before others may take over. A process that was frozen and wakes
up therefore finds itself no leader, at the very next look.

The session should be its own, so that no renewal queues behind other requests.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError, NotFound
from autoscaler.kube.watch import Change, Watched, follow
from autoscaler.types.record import Record

log = logging.getLogger(__name__)

_KIND: Final = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
_RELEASED: Final = 1
"""A released lease lasts a second, so that anyone may have it at once."""

_GOODBYE: Final = timedelta(seconds=1)
"""How long a release may take; the process has been told to stop and is waited for."""


class LeaseTimes(Record):
    """How long leadership lasts, with kube-controller-manager's names and defaults."""

    lease_duration: timedelta = timedelta(seconds=15)
    """How long others wait after the last renewal that they saw."""

    renew_deadline: timedelta = timedelta(seconds=10)
    """How long the leader goes on without a renewal that succeeded."""

    retry_period: timedelta = timedelta(seconds=2)
    """How often the leader renews and the others look."""


class LeadershipLost(Exception):
    """Another process may be leading now; nothing may be written any more."""


class Lease:
    """One process' claim to one lease."""

    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        clock: Callable[[], datetime],
        times: LeaseTimes | None = None,
    ) -> None:
        self.identity = identity
        self._client = client
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._clock = clock
        self._times = times or LeaseTimes()
        self._lease: Json | None = None
        self._changed_at = 0.0
        """When the lease was last seen to differ from what it was before."""
        self._safe_until = 0.0
        """Until when nobody else can have taken over."""

    @property
    def is_held(self) -> bool:
        """Whether this process leads; to be asked right before each write."""
        return _now() < self._safe_until

    @property
    def holder(self) -> str:
        """Who leads, as far as was seen; empty: nobody."""
        return str((self._lease or {}).get("spec", {}).get("holderIdentity") or "")

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait to be the leader, then do `work` for as long as that lasts.

        Raises LeadershipLost when it ends, after `work` has been cancelled and has stopped; nothing is written after
        that. When cancelled itself, it stops `work` first and then hands the lease over.
        """
        await self._acquire()
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
        """Wait until this process leads; a lease that is let go is heard of at once, others are looked at."""
        news = asyncio.Event()
        listening = asyncio.ensure_future(self._listen(news))
        try:
            while not await self._claimed():
                news.clear()
                patience = self._times.retry_period.total_seconds() * random.uniform(1, 2.2)  # noqa: S311 - spreads load
                with suppress(TimeoutError):
                    async with asyncio.timeout(patience):
                        await news.wait()
        finally:
            await _stop(listening)
        log.info("leading", extra={"lease": self._name, "identity": self.identity})

    async def _listen(self, news: asyncio.Event) -> None:
        watched = Watched(self._collection, field_selector=f"metadata.name={self._name}")
        async with aclosing(follow(self._client, watched)) as changes:
            async for change in changes:
                if isinstance(change, Change) and not change.object.get("spec", {}).get("holderIdentity"):
                    news.set()

    async def _renew(self) -> None:
        """Renew again and again; returns when that has failed for too long."""
        period, renewed = self._times.retry_period.total_seconds(), True
        while (left := self._safe_until - _now()) > 0:
            await asyncio.sleep(min(period if renewed else period / 4, left))
            renewed = self._safe_until > _now() and await self._claimed()
        log.warning("no longer leading", extra={"lease": self._name, "identity": self.identity})

    async def _claimed(self) -> bool:
        """Try once to have the lease, in half the time that may pass without it."""
        began = _now()
        try:
            async with asyncio.timeout(self._patience()):
                if not await self._claim():
                    return False
        except (KubeError, TimeoutError) as error:
            log.info("the lease was not renewed", extra={"lease": self._name, "error": str(error)})
            return False
        self._safe_until = began + self._times.renew_deadline.total_seconds()
        return True

    def _patience(self) -> float:
        half = (self._times.renew_deadline / 2).total_seconds()
        left = self._safe_until - _now()
        return min(half, left) if left > 0 else half

    async def _claim(self) -> bool:
        if not self.is_held or self._lease is None:
            await self._look()
        if self._lease is None:
            body = {"metadata": {"name": self._name}, "spec": self._spec(transitions=0, acquired=None)}
            self._observe(await self._client.create(self._collection, {**_KIND, **body}))
            return True
        if self.holder not in {"", self.identity} and not self._has_run_out():
            self._safe_until = 0.0
            return False
        try:
            await self._take(self._lease)
        except KubeError:
            await self._look()  # so that the next attempt is made with open eyes
            raise
        return True

    async def _look(self) -> None:
        try:
            self._observe(await self._client.get(f"{self._collection}/{self._name}"))
        except NotFound:
            self._lease = None

    def _observe(self, lease: Json) -> None:
        if self._lease is None or self._lease.get("spec") != lease.get("spec"):
            self._changed_at = _now()
        self._lease = lease

    def _has_run_out(self) -> bool:
        spec = (self._lease or {}).get("spec", {})
        lasts = spec.get("leaseDurationSeconds") or self._times.lease_duration.total_seconds()
        return _now() >= self._changed_at + float(lasts)

    async def _take(self, lease: Json) -> None:
        """Write over the version that was seen, and over no other."""
        spec = lease.get("spec") or {}
        ours = self.holder == self.identity
        transitions = int(spec.get("leaseTransitions") or 0) + (0 if ours else 1)
        written = {**lease, "spec": self._spec(transitions, spec.get("acquireTime") if ours else None)}
        self._observe(await self._client.replace(f"{self._collection}/{self._name}", written))

    def _spec(self, transitions: int, acquired: str | None) -> Json:
        now = _micro_time(self._clock())
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._times.lease_duration.total_seconds()),
            "acquireTime": acquired or now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    async def _release(self) -> None:
        """Let the next one have it at once; if that does not work out, it runs out by itself."""
        self._safe_until = 0.0
        if self._lease is None or self.holder != self.identity:
            return
        spec = {**self._lease["spec"], "holderIdentity": "", "leaseDurationSeconds": _RELEASED}
        try:
            async with asyncio.timeout(_GOODBYE.total_seconds()):
                await self._client.replace(f"{self._collection}/{self._name}", {**self._lease, "spec": spec})
        except (KubeError, TimeoutError) as error:
            log.info("the lease was not released", extra={"lease": self._name, "error": str(error)})


async def _stop(task: "asyncio.Future[None]") -> None:
    """Cancel and wait until it has stopped; what it ends with is of no interest any more."""
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()


def _micro_time(at: datetime) -> str:
    """Print a time with its microseconds, all six digits, without which the API server does not read it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _now() -> float:
    return asyncio.get_running_loop().time()

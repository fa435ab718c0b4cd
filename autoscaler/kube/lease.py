"""Leader election with a Lease: at most one process leads, and it stops before another one can take over.

`autoscaler.sharding.lease_state` has the rules. The clock advances while the machine is suspended, so a process that
was suspended is no longer leader at its next check.

Use a separate KubeClient, so that renewals never queue behind other requests.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from datetime import datetime, timedelta
from typing import Final

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import KubeError, NotFound, describe
from autoscaler.kube.lease_objects import decode_lease, holder_of, lease_collection
from autoscaler.kube.paths import api_path
from autoscaler.kube.watch import ListWatch, WatchEvent, list_and_watch
from autoscaler.settings import ControllerOptions
from autoscaler.sharding.lease_state import LeaseSpec, LeaseState
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
        self,
        client: KubeClient,
        options: ControllerOptions,
        *,
        identity: str,
        clock: Callable[[], datetime],
        name: str = "",
        labels: Mapping[str, str] | None = None,
        state: LeaseState | None = None,
    ) -> None:
        """Create the elector of the Lease ``name``, by default that of the options.

        ``labels`` are those of a Lease that it creates. ``state`` may also be updated by observations of the caller.
        """
        self.identity = identity
        self._client = client
        self._collection = lease_collection(options)
        self._name = name or options.lease_name
        self._labels = labels
        self._clock = clock
        self._options = options
        self._content: Json | None = None
        """The Lease as it was last read or written; None if it does not exist."""
        seconds = options.lease_duration.total_seconds(), options.renew_deadline.total_seconds()
        self._state = state or LeaseState(identity, *seconds)

    @property
    def is_leader(self) -> bool:
        """Whether this process is the leader; checked right before each write."""
        return self._state.is_held(self._client.now())

    @property
    def holder(self) -> str:
        """The identity of the observed leader; empty if there is none."""
        return self._state.holder

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Acquire the lease, then run ``work`` while this process is the leader.

        Raises LeadershipLost if the lease is lost, after ``work`` was cancelled and has ended. On cancellation,
        ``work`` is cancelled first and then the lease is released.
        """
        try:
            await self._acquire()
        except asyncio.CancelledError:
            await self.release()  # the lease may have been acquired a moment ago
            raise
        await self.hold(work)

    async def hold(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run ``work`` and renew the lease, which was acquired before; see `run`."""
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
                await self.release()
        if lost:
            raise LeadershipLost(f"{self.identity} did not renew the lease {self._name} in time")

    async def _acquire(self) -> None:
        """Acquire the lease; a watch reports its release at once, otherwise it is checked every retry period."""
        released = asyncio.Event()
        watching = asyncio.ensure_future(self._watch_release(released))
        try:
            while not await self.try_acquire_or_renew():
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
                if isinstance(item, WatchEvent) and not holder_of(item.object):
                    released.set()

    async def _renew(self) -> None:
        """Renew the lease every retry period; return when the renew deadline has passed."""
        period = self._options.retry_period.total_seconds()
        # Counted from the start of the last request, so that a slow API server does not delay the next renewal.
        next_attempt = self._state.held_until - self._options.renew_deadline.total_seconds() + period
        while (remaining := self._state.held_until - self._client.now()) > 0:
            await asyncio.sleep(min(max(next_attempt - self._client.now(), 0), remaining))
            started = self._client.now()
            renewed = self.is_leader and await self.try_acquire_or_renew()
            next_attempt = started + (period if renewed else period / 4)
        log.warning(
            "failed to renew lease before the renew deadline", extra={"lease": self._name, "identity": self.identity}
        )

    async def try_acquire_or_renew(self) -> bool:
        """Try once to acquire or renew the lease; return whether it succeeded. The reason of a failure is logged."""
        try:
            return await self._acquire_or_renew()
        except KubeError as error:
            log.info("failed to acquire or renew lease", extra={"lease": self._name, "error": describe(error)})
            return False

    async def _acquire_or_renew(self) -> bool:
        if not self.is_leader or self._content is None:
            await self.fetch()
        if self._content is None:
            metadata = {"name": self._name, **({"labels": dict(self._labels)} if self._labels else {})}
            body = {"metadata": metadata, "spec": self._spec(transitions=0, acquired=None)}
            await self._write("POST", self._collection, {**_KIND, **body})
            return True
        is_renewal = self.holder == self.identity
        if not is_renewal and not self._state.is_free(self._client.now()):
            self._state.drop()
            return False
        spec = self._state.spec or LeaseSpec()
        transitions = (spec.lease_transitions or 0) + (0 if is_renewal else 1)
        renewed = {**self._content, "spec": self._spec(transitions, spec.acquire_time if is_renewal else None)}
        try:
            await self._write("PUT", f"{self._collection}{api_path(self._name)}", renewed)
        except KubeError:
            await self.fetch()  # the next attempt needs the current resourceVersion
            raise
        return True

    async def fetch(self) -> None:
        """Read the lease."""
        started = self._client.now()
        try:
            path = f"{self._collection}{api_path(self._name)}"
            lease = decode_lease(await self._client.request("GET", path, timeout=self._request_timeout()))
        except NotFound:
            self._content = None
            self._state.observe(None, started, self._client.now())
        else:
            self._content = lease.content
            self._state.observe(lease.spec, started, self._client.now())

    async def _write(self, method: str, path: str, body: Json) -> None:
        """Create or replace the lease; if it was changed meanwhile, the API server responds with a Conflict."""
        started = self._client.now()
        lease = decode_lease(await self._client.request(method, path, body=body, timeout=self._request_timeout()))
        self._content = lease.content
        self._state.written(lease.spec, started, self._client.now())

    def _request_timeout(self) -> timedelta:
        """Return half of the renew deadline for each request; less if leadership would be lost before."""
        half = self._options.renew_deadline / 2
        remaining = timedelta(seconds=max(self._state.held_until - self._client.now(), 0))
        return min(half, remaining) if remaining else half

    def _spec(self, transitions: int, acquired: str | None) -> Json:
        now = format_rfc3339(self._clock(), "microseconds")  # the API server requires all six digits
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._options.lease_duration.total_seconds()),
            "acquireTime": acquired or now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    async def release(self) -> None:
        """Release the lease, so that another process acquires it at once; if that fails, the lease expires."""
        self._state.drop()
        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT.total_seconds()):
                with suppress(KubeError):
                    await self.fetch()  # the last write may have been applied without a response, or was cancelled
                if self._content is None or self.holder != self.identity:
                    return
                spec = {**self._content["spec"], "holderIdentity": "", "leaseDurationSeconds": _RELEASED_SECONDS}
                path, body = f"{self._collection}{api_path(self._name)}", {**self._content, "spec": spec}
                await self._client.request("PUT", path, body=body)
        except (KubeError, TimeoutError) as error:
            log.info("failed to release lease", extra={"lease": self._name, "error": describe(error)})


async def _stop(task: "asyncio.Future[None]") -> None:
    """Cancel a task and wait until it has ended; retrieve its exception so that asyncio does not log it."""
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()

"""Runs the shard protocol: Leases of shards, members and the gate, and a controller for each shard that is held.

`autoscaler.sharding` decides; this module sends the requests. A shard that is released or lost ends its controller
first, which finishes and flushes its writes, so that the next holder continues from the status of each autoscaler.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import KubeError, MalformedResponse, NotFound, describe
from autoscaler.kube.lease import LeaderElector, LeadershipLost
from autoscaler.kube.lease_objects import DecodedLease, decode_lease, lease_collection
from autoscaler.kube.objects import decode_response
from autoscaler.kube.paths import api_path
from autoscaler.kube.tasks import background_tasks
from autoscaler.ports import Clock
from autoscaler.settings import ControllerOptions
from autoscaler.sharding.lease_state import LeaseSpec
from autoscaler.sharding.protocol import LeaseTiming, ShardProtocol
from autoscaler.telemetry import ShardTelemetry

log = logging.getLogger(__name__)

Control: TypeAlias = Callable[[int, Callable[[], bool]], Awaitable[None]]
"""Controls the autoscalers of a shard until cancelled; writes only while the function returns True."""

LABELS: Final = {"steadyscale.dev/sharding": "true"}
_SELECTOR: Final = "steadyscale.dev/sharding=true"


class ShardRunner:
    """The shards of this process."""

    def __init__(
        self,
        client: KubeClient,
        options: ControllerOptions,
        *,
        identity: str,
        clock: Clock,
        telemetry: ShardTelemetry,
        control: Control,
    ) -> None:
        seconds = (options.lease_duration, options.renew_deadline, options.retry_period)
        timing = LeaseTiming(*(duration.total_seconds() for duration in seconds))
        self.protocol = ShardProtocol(identity, options.shards, timing)
        self._client = client
        self._collection = lease_collection(options)
        self._prefix = f"{options.lease_name}-shard-"
        self._members_prefix = f"{options.lease_name}-member-{options.shards}-"
        self._member_name = f"{self._members_prefix}{blake2b(identity.encode(), digest_size=8).hexdigest()}"
        elector = partial(LeaderElector, client, options, clock=clock)
        self._gate = elector(identity=self.protocol.gate.identity, state=self.protocol.gate)
        self._member = elector(identity=identity, name=self._member_name, labels=LABELS)
        self._electors = [
            elector(identity=identity, name=f"{self._prefix}{shard}", labels=LABELS, state=lease)
            for shard, lease in enumerate(self.protocol.leases)
        ]
        self._retry_period = timing.retry_period
        self._telemetry = telemetry
        self._control = control
        self._running: dict[int, asyncio.Task[None]] = {}
        telemetry.total.set(options.shards)

    def holder(self, shard: int) -> str:
        """Return the identity of the observed holder of a shard; empty if there is none."""
        lease = self.protocol.leases[shard]
        return "" if lease.is_free(self._client.now()) and shard not in self._running else lease.holder

    async def run(self) -> None:
        """Take part until cancelled; then stop all controllers and release their shards."""
        async with background_tasks(self._client.metrics) as start_task:
            start_task(self._keep_gate, "shard gate")
            member = start_task(self._keep_member, "shard member")
            try:
                while True:  # noqa: ASYNC110 - the delay is the result of the step
                    await asyncio.sleep(await self._step())
            finally:
                member.cancel()
                await asyncio.gather(self._leave(), self._stop())

    async def _step(self) -> float:
        """List the Leases, start and stop controllers accordingly; return the seconds until the next step."""
        try:
            await self._list()
        except KubeError as error:
            log.info("failed to list the leases of shards", extra={"error": describe(error)})
        now = self._client.now()
        assignment = self.protocol.next(self._running, now)
        for shard in assignment.release:
            if not self._running[shard].cancelling():  # a second cancellation would end the release of the lease
                log.info("releasing shard", extra={"shard": shard})
                self._running[shard].cancel()
        for shard in assignment.acquire:
            self._running[shard] = asyncio.create_task(self._hold(shard), name=f"shard {shard}")
        self._telemetry.unheld.set(len(self.protocol.unheld(now)))
        for name in self.protocol.abandoned_members(now):
            await self._delete(name)
        return self.protocol.next_delay(assignment, now) * random.uniform(0.8, 1.0)  # noqa: S311 - jitter

    async def _list(self) -> None:
        requested_at = self._client.now()
        content = await self._client.request("GET", self._collection, query={"labelSelector": _SELECTOR})
        shards: dict[int, LeaseSpec] = {}
        members: dict[str, LeaseSpec] = {}
        for item in content.get("items") or ():
            with suppress(MalformedResponse, ValueError):  # is treated as absent; its elector logs why it fails
                name, lease = decode_response("Lease", _named_lease, item)
                if name.startswith(self._prefix):
                    shards[int(name.removeprefix(self._prefix))] = lease.spec
                elif name.startswith(self._members_prefix):
                    members[name] = lease.spec
        self.protocol.observe(shards, members, self._running, requested_at, self._client.now())

    async def _hold(self, shard: int) -> None:
        """Acquire a shard and control it until it is released or lost."""
        elector, fields = self._electors[shard], {"shard": shard}
        try:
            if await self._acquire(elector):
                log.info("acquired shard", extra=fields)
                await elector.hold(lambda: self._control(shard, self._may_write(shard)))
        except LeadershipLost as error:
            log.warning("shard lost", extra={**fields, "reason": str(error)})
        except Exception:
            log.exception("controller of the shard failed; the shard is acquired again", extra=fields)
        finally:
            del self._running[shard]

    async def _acquire(self, elector: LeaderElector) -> bool:
        try:
            return await elector.try_acquire_or_renew()
        except asyncio.CancelledError:
            await elector.release()  # it may have been acquired a moment ago
            raise

    def _may_write(self, shard: int) -> Callable[[], bool]:
        return lambda: self.protocol.holds(shard, self._client.now())

    async def _keep_gate(self) -> None:
        """Acquire the gate and keep it renewed, together with the other processes that have as many shards."""
        waits_for = ""
        while True:
            with suppress(KubeError):  # is retried; without the gate nothing is written
                await self._gate.fetch()
                if self.protocol.must_write_gate(self._client.now()):
                    await self._gate.try_acquire_or_renew()
            is_held, holder = self._gate.is_leader, self._gate.holder
            if not is_held and holder not in {"", waits_for, self._gate.identity}:
                log.warning("waiting for processes with another number of shards", extra={"holder": holder})
            waits_for = "" if is_held else holder
            await asyncio.sleep(self._retry_period / (2 if is_held else 4))

    async def _keep_member(self) -> None:
        while True:
            await self._member.try_acquire_or_renew()
            await asyncio.sleep(self._retry_period)

    async def _leave(self) -> None:
        """Remove this process from the members, so that the others take its shards at once."""
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._delete(self._member_name)

    async def _stop(self) -> None:
        """Stop all controllers and release their shards."""
        tasks = tuple(self._running.values())
        for task in tasks:
            if not task.cancelling():
                task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _delete(self, name: str) -> None:
        try:
            await self._client.request("DELETE", f"{self._collection}{api_path(name)}")
        except NotFound:
            return
        except KubeError as error:
            log.info("failed to delete the lease of a member", extra={"lease": name, "error": describe(error)})


def _named_lease(item: dict[str, Any]) -> tuple[str, DecodedLease]:
    return str(item["metadata"]["name"]), decode_lease(item)

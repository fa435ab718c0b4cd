"""The shard protocol as one process follows it: its observations, and what it does next. Pure.

Each shard has a Lease, and only its holder controls the autoscalers of the shard. Each process renews a member Lease,
by which the others know that it takes its share. The number of shards is agreed through one more Lease, the gate: it is
held by all processes with the same number together, and nothing is controlled without it. Processes with another number
of shards, or without shards, therefore wait until it has expired.

Safety depends on the shard Leases and the gate alone. Members and quotas only decide which process takes which shard.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from autoscaler.sharding.assignment import Assignment, assign
from autoscaler.sharding.lease_state import LeaseSpec, LeaseState
from autoscaler.sharding.members import MemberObservations
from autoscaler.types.record import Record

_MEMBER_PERIODS: Final = 3
"""A member that has not renewed its Lease for so many retry periods gets no further shards."""

_ABANDONED_LEASES: Final = 40
"""Lease durations without renewal after which a member Lease is deleted."""


class LeaseTiming(Record):
    """The durations of leader election in seconds."""

    lease_duration: float
    renew_deadline: float
    retry_period: float

    def state(self, identity: str, *, is_shared: bool = False) -> LeaseState:
        return LeaseState(identity, self.lease_duration, self.renew_deadline, is_shared)


def gate_identity(shards: int) -> str:
    """Return the holder of the gate, in which all processes with the same number of shards agree."""
    return f"{shards}-shards"


@dataclass
class ShardProtocol:
    """The observations of one process. Times are seconds of its local clock."""

    identity: str
    shards: int
    timing: LeaseTiming
    gate: LeaseState = field(init=False)
    leases: tuple[LeaseState, ...] = field(init=False)
    """The Lease of each shard."""

    members: MemberObservations = field(default_factory=MemberObservations)
    _free_since: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.gate = self.timing.state(gate_identity(self.shards), is_shared=True)
        self.leases = tuple(self.timing.state(self.identity) for _ in range(self.shards))

    def holds(self, shard: int, now: float) -> bool:
        """Return whether this process may write objects of a shard; checked right before each write."""
        return self.leases[shard].is_held(now) and self.gate.is_held(now)

    def must_write_gate(self, now: float) -> bool:
        """Return whether to acquire or renew the gate: it is free, or no process has renewed it for a retry period."""
        if self.gate.holder != self.gate.identity:
            return self.gate.is_free(now)
        return now >= self.gate.changed_at + self.timing.retry_period or not self.gate.is_held(now)

    def observe(
        self,
        shards: Mapping[int, LeaseSpec],
        members: Mapping[str, LeaseSpec],
        running: Collection[int],
        requested_at: float,
        now: float,
    ) -> None:
        """Record a list of all Leases; those in ``running`` are observed by their own renewals."""
        for shard, lease in enumerate(self.leases):
            if shard not in running:
                lease.observe(shards.get(shard), requested_at, now)
        self.members.observe(members, now)
        free = (shard for shard, lease in enumerate(self.leases) if shard not in running and self._is_free(lease, now))
        self._free_since = {shard: self._free_since.get(shard, now) for shard in free}

    def next(self, running: Collection[int], now: float) -> Assignment:
        """Return what to acquire and release; ``running`` are the shards whose controller runs in this process.

        Without the gate everything is released.
        """
        if not self.gate.is_held(now):
            return Assignment((), tuple(sorted(running)), is_complete=False)
        holders = [
            self.identity if shard in running else "" if self._is_free(lease, now) else lease.holder
            for shard, lease in enumerate(self.leases)
        ]
        overdue = [s for s, since in self._free_since.items() if now >= since + self.timing.retry_period]
        return assign(self.identity, self._live_members(now), holders, overdue)

    def unheld(self, now: float) -> dict[int, float]:
        """Return the seconds for which each shard without a holder has been free."""
        return {shard: now - since for shard, since in self._free_since.items()}

    def next_delay(self, assignment: Assignment, now: float) -> float:
        """Return the seconds until the next list: until the next lease expires, at most one retry period.

        While shards are moving, it is a quarter of the period, because a free shard is not controlled.
        """
        soon = self.timing.retry_period / 4
        if not assignment.is_complete:
            return soon
        expiries = [lease.expires_at - now for lease in self.leases if lease.holder not in {"", self.identity}]
        return max(min([self.timing.retry_period, *expiries]), soon)

    def abandoned_members(self, now: float) -> tuple[str, ...]:
        """Return the names of member Leases to delete."""
        return self.members.abandoned(now, _ABANDONED_LEASES * self.timing.lease_duration)

    def _is_free(self, lease: LeaseState, now: float) -> bool:
        """Return whether this process may acquire a lease; its own can remain from a write without a response."""
        return lease.is_free(now) or lease.holder == self.identity

    def _live_members(self, now: float) -> frozenset[str]:
        return self.members.live(now, _MEMBER_PERIODS * self.timing.retry_period)

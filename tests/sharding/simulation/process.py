"""One simulated process: follows the protocol as `autoscaler.controller.shards` does, with simulated requests."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Final

from autoscaler.sharding.lease_state import LeaseSpec, LeaseState
from autoscaler.sharding.protocol import LeaseTiming, ShardProtocol
from tests.sharding.simulation.world import Conflict, Delete, Get, Host, ListAll, ObjectWrite, Put, Sleep, Stored, World

TIMING: Final = LeaseTiming(lease_duration=15.0, renew_deadline=10.0, retry_period=2.0)
GATE: Final = "gate"
Steps = Generator[Any, Any, Any]


@dataclass
class Process:
    """The protocol of one process, and the shards that it controls."""

    world: World
    host: Host
    shards: int
    running: dict[int, str] = field(default_factory=dict)
    """Shards with a controller, and its phase: starting, controlling or stopping."""

    is_stopping: bool = False
    has_ended: bool = False
    _writing: set[int] = field(default_factory=set)
    """Shards with an object write without a response."""

    _versions: dict[str, int] = field(default_factory=dict)
    _renewals: int = 0

    def __post_init__(self) -> None:
        self.protocol = ShardProtocol(self.host.name, self.shards, TIMING)
        self._member = TIMING.state(self.host.name)

    @property
    def now(self) -> float:
        return self.world.local(self.host)

    @property
    def is_alive(self) -> bool:
        return not self.host.is_dead and not self.has_ended

    def controls(self, shard: int) -> bool:
        """Return whether the process would write objects of the shard now."""
        return self.is_alive and self.running.get(shard) == "controlling" and self.protocol.holds(shard, self.now)

    def run(self) -> Steps:
        """Follow the protocol until the process is stopped."""
        world, protocol, member = self.world, self.protocol, f"member-{self.shards}-{self.host.name}"
        yield Sleep(world.random.uniform(0, 1))
        world.start(self.host, self._renew_gate())
        world.start(self.host, self._renew_member(member))
        while not self.is_stopping:
            requested_at = self.now
            listed = yield ListAll()
            if listed is not None:
                self._record(listed, requested_at)
            assignment = protocol.next(self.running, self.now)
            for shard in assignment.release:
                self.running[shard] = "stopping"
            for shard in assignment.acquire:
                if shard not in self.running:
                    self.running[shard] = "starting"
                    world.start(self.host, self._hold(shard))
            for name in protocol.abandoned_members(self.now):
                yield Delete(name)
            yield Sleep(protocol.next_delay(assignment, self.now) * world.random.uniform(0.8, 1.0))
        self.running |= dict.fromkeys(self.running, "stopping")
        yield Delete(member)
        while self.running:
            yield Sleep(0.05)
        self.has_ended = True

    def _renew_gate(self) -> Steps:
        gate = self.protocol.gate
        while not self.is_stopping:
            yield from self._observe(GATE, gate)
            if self.protocol.must_write_gate(self.now):
                yield from self._write(GATE, gate)
            yield Sleep(TIMING.retry_period / (2 if gate.is_held(self.now) else 4))

    def _renew_member(self, name: str) -> Steps:
        while not self.is_stopping:
            yield from self._write(name, self._member)
            yield Sleep(TIMING.retry_period)

    def _record(self, listed: dict[str, Stored], requested_at: float) -> None:
        shards = {int(name[6:]): stored.spec for name, stored in listed.items() if name.startswith("shard-")}
        prefix = f"member-{self.shards}-"
        members = {name: stored.spec for name, stored in listed.items() if name.startswith(prefix)}
        self.protocol.observe(shards, members, self.running, requested_at, self.now)

    def _hold(self, shard: int) -> Steps:
        """Acquire a shard and renew it until it is released or lost."""
        name, lease = f"shard-{shard}", self.protocol.leases[shard]
        yield from self._observe(name, lease)
        if (lease.is_free(self.now) or lease.holder == self.host.name) and (yield from self._write(name, lease)):
            self.world.start(self.host, self._control(shard))
            next_attempt = self.now + TIMING.retry_period
            while lease.is_held(self.now) and self.running[shard] != "stopping":
                if self.now >= next_attempt:
                    renewed = yield from self._write(name, lease)
                    next_attempt = self.now + TIMING.retry_period / (1 if renewed else 4)
                    if not renewed:
                        yield from self._observe(name, lease)
                        if lease.holder != self.host.name:
                            break
                yield Sleep(min(max(next_attempt - self.now, 0.05), 0.5))
            self.running[shard] = "stopping"
            while lease.is_held(self.now) and shard in self._writing:
                yield Sleep(0.05)
            yield from self._release(name, lease)
        lease.drop()
        del self.running[shard]

    def _release(self, name: str, lease: LeaseState) -> Steps:
        lease.drop()
        yield from self._observe(name, lease)
        if lease.holder == self.host.name:
            yield Put(name, self._versions[name], LeaseSpec("", 1))

    def _control(self, shard: int) -> Steps:
        """Write objects while the shard is held, after the time that listing them takes."""
        yield Sleep(self.world.random.uniform(0.05, 1.0))
        if self.running.get(shard) == "starting":
            self.running[shard] = "controlling"
        while self.running.get(shard) == "controlling":
            if self.protocol.holds(shard, self.now):
                self._writing.add(shard)
                yield ObjectWrite(shard)
                self._writing.discard(shard)
            yield Sleep(self.world.random.uniform(1, 4))

    def _observe(self, name: str, lease: LeaseState) -> Steps:
        requested_at = self.now
        stored = yield Get(name)
        if stored is not None:
            self._versions[name] = stored.version
            lease.observe(stored.spec if stored.version else None, requested_at, self.now)

    def _write(self, name: str, lease: LeaseState) -> Steps:
        """Create, acquire or renew a lease with the version that was read; return whether it succeeded."""
        self._renewals += 1
        spec = LeaseSpec(lease.identity, 15, None, f"{self.host.name} {self._renewals}")
        requested_at = self.now
        response = yield Put(name, self._versions.get(name, 0), spec)
        if response is None or isinstance(response, Conflict):
            yield from self._observe(name, lease)
            return False
        self._versions[name] = response.version
        lease.written(spec, requested_at, self.now)
        return True

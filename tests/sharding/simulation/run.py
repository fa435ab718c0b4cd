"""One run of the simulation: random faults, and the invariants of the protocol.

1. A write reaches the API server only while its process is the holder of the shard, and its number of shards is agreed.
2. No two processes control one shard, or different numbers of shards, at the same time.
3. While a healthy process exists, no shard is without a holder for longer than `MAX_UNHELD`. The time starts again if
   the process that has acquired the shard meanwhile fails, too.
4. After the faults have ended, every shard is held, every process has its fair share, and no shard moves any more.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from autoscaler.sharding.protocol import gate_identity
from tests.sharding.simulation.process import GATE, TIMING, Process
from tests.sharding.simulation.world import Host, World

SLOWEST: Final = 0.9
FASTEST: Final = 1.1
MAX_UNHELD: Final = (TIMING.lease_duration + 5.0) / SLOWEST
FAULTS_SECONDS: Final = 80.0
SETTLE_SECONDS: Final = 60.0
QUIET_SECONDS: Final = 10.0


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass(frozen=True)
class Size:
    """The number of processes and shards."""

    processes: int
    shards: int

    @classmethod
    def of_seed(cls, seed: int) -> "Size":
        """Return the size of a run: one in a hundred has 50 processes."""
        choice = random.Random(seed)  # noqa: S311 - a simulation
        if seed % 100 == 0:
            return cls(50, choice.choice((50, 64, 100)))
        if seed % 5 == 1:
            return cls(choice.randint(6, 12), choice.randint(8, 24))
        return cls(choice.randint(1, 5), choice.randint(2, 8))


@dataclass
class Run:
    """The processes of one run, and the faults that happen to them."""

    seed: int
    size: Size
    mixed: bool = False
    """Whether some processes have another number of shards, as during a rolling update."""

    processes: list[Process] = field(default_factory=list)
    writes: int = 0
    longest_unheld: float = 0.0
    _held_at: dict[int, float] = field(default_factory=dict)
    _acquired: dict[int, tuple[str, float]] = field(default_factory=dict)
    """The last holder of each shard in its Lease, and when it acquired the shard."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)  # noqa: S311 - a simulation
        self.world = World(self.random, self._check_write)

    def execute(self) -> "Run":
        """Run the faults, then let the processes settle; raise Violation."""
        for _ in range(self.size.processes):
            self._start()
        if self.mixed:
            self._start(self.size.shards + 1)
        self._tick()
        self._schedule_faults()
        self.world.run(FAULTS_SECONDS)
        self.world.lost_responses = 0.0
        for process in self.processes:
            process.host.is_partitioned = False
            if process.shards != self.size.shards:
                process.host.is_dead = True
        if not any(process.is_alive and not process.is_stopping for process in self.processes):
            self._start()
        self.world.run(FAULTS_SECONDS + SETTLE_SECONDS)
        before = self._check_settled()
        self.world.run(self.world.now + QUIET_SECONDS)
        if self._check_settled() != before:
            raise self._violation("shards move although nothing changes")
        return self

    # --- faults ------------------------------------------------------------------------------------------------------

    def _start(self, shards: int = 0) -> None:
        world, number = self.world, len(self.processes)
        rate, offset = self.random.uniform(SLOWEST, FASTEST), self.random.uniform(0, 10**6)
        host = Host(f"p{number:03}", rate, offset, started_at=world.now, troubled_at=world.now)
        self.processes.append(process := Process(world, host, shards or self.size.shards))
        world.start(host, process.run())

    def _schedule_faults(self) -> None:
        count = self.random.randint(0, 2 + self.size.processes // 2)
        for _ in range(count):
            fault = self.random.choice((self._kill, self._leave, self._join, self._freeze, self._partition))
            self.world.at(self.random.uniform(10, FAULTS_SECONDS), fault)
        if self.mixed:
            self.world.at(self.random.uniform(10, FAULTS_SECONDS), lambda: self._start(self.size.shards + 1))

    def _victim(self) -> Process | None:
        candidates = [process for process in self.processes if process.is_alive]
        return self.random.choice(candidates) if candidates else None

    def _kill(self) -> None:
        if (victim := self._victim()) is not None:
            victim.host.is_dead = True

    def _leave(self) -> None:
        if (victim := self._victim()) is not None:
            victim.is_stopping = True

    def _join(self) -> None:
        self._start()

    def _freeze(self) -> None:
        if (victim := self._victim()) is not None:
            victim.host.frozen_until = self.world.now + self.random.uniform(0.5, 40)

    def _partition(self) -> None:
        share = self.random.uniform(0, 1)
        hit = [process.host for process in self.processes if process.is_alive and self.random.random() < share]
        for host in hit:
            host.is_partitioned = True

        def heal() -> None:
            for host in hit:
                host.is_partitioned = False

        self.world.at(self.world.now + self.random.uniform(1, 40), heal)

    # --- invariants --------------------------------------------------------------------------------------------------

    def _check_write(self, host: Host, shard: int) -> None:
        self.writes += 1
        process = next(process for process in self.processes if process.host is host)
        lease, gate = self.world.leases[f"shard-{shard}"], self.world.leases[GATE]
        if lease.spec.holder_identity != host.name:
            raise self._violation(f"{host.name} writes shard {shard}, held by {lease.spec.holder_identity!r}")
        if gate.spec.holder_identity != gate_identity(process.shards):
            raise self._violation(f"{host.name} has {process.shards} shards, agreed is {gate.spec.holder_identity}")

    def _tick(self) -> None:
        """Check what is controlled, twice per second."""
        world, owners, numbers, held = self.world, Counter[int](), set[int](), set[int]()
        for process in self.processes:
            host = process.host
            if not process.is_alive or host.is_partitioned or world.now < host.frozen_until or process.is_stopping:
                host.troubled_at = world.now
            for shard in process.running:
                if process.controls(shard):
                    owners[shard] += 1
                    numbers.add(process.shards)
                if process.is_alive and process.protocol.holds(shard, process.now):
                    held.add(shard)
        if len(numbers) > 1 or any(count > 1 for count in owners.values()):
            raise self._violation(f"controlled twice: {owners.most_common(1)}, numbers of shards {numbers}")
        if not self.mixed:
            self._check_unheld(held)
        world.at(world.now + 0.5, self._tick)

    def _check_unheld(self, held: set[int]) -> None:
        now = self.world.now
        healthy_since = min((process.host.troubled_at for process in self.processes if process.is_alive), default=now)
        for shard in range(self.size.shards):
            failed_holder_at = self._acquired_by_failed(shard)
            if shard in held:
                self._held_at[shard] = now
                continue
            unheld = now - max(self._held_at.get(shard, 0.0), healthy_since, failed_holder_at)
            self.longest_unheld = max(self.longest_unheld, unheld)
            if unheld > MAX_UNHELD:
                raise self._violation(f"shard {shard} has no holder for {unheld:.1f} s")

    def _acquired_by_failed(self, shard: int) -> float:
        """Return when the holder in the Lease acquired the shard, if it has failed since; otherwise zero."""
        lease = self.world.leases.get(f"shard-{shard}")
        holder = "" if lease is None else lease.spec.holder_identity or ""
        if holder and self._acquired.get(shard, ("", 0.0))[0] != holder:
            self._acquired[shard] = holder, self.world.now
        name, acquired_at = self._acquired.get(shard, ("", 0.0))
        failed = any(p.host.name == name and p.host.troubled_at >= acquired_at for p in self.processes)
        return acquired_at if failed else 0.0

    def _check_settled(self) -> dict[int, str]:
        alive = [process for process in self.processes if process.is_alive and not process.is_stopping]
        owners = {shard: p.host.name for p in alive for shard in p.running if p.controls(shard)}
        if len(owners) != self.size.shards:
            raise self._violation(f"only {len(owners)} of {self.size.shards} shards are controlled in the end")
        counts = Counter({process.host.name: 0 for process in alive} | Counter(owners.values()))
        if max(counts.values()) - min(counts.values()) > 1:
            raise self._violation(f"unfair in the end: {counts}")
        return owners

    def _violation(self, text: str) -> Violation:
        return Violation(f"seed {self.seed}, {self.size}, at {self.world.now:.1f} s: {text}")


def simulate(seed: int) -> Run:
    """Run one seed; a third of the runs have processes with another number of shards."""
    return Run(seed, Size.of_seed(seed), mixed=seed % 3 == 1).execute()

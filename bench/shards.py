"""Shards on a real API server: division of work, take-over after a kill, pauses when a process joins and leaves.

    python -m bench.shards [--processes 4] [--shards 16] [--per-shard 4]

Half of the processes start, then under a load that changes every four seconds the other half joins, one process is
killed with SIGKILL, and one is stopped. All figures are from the record of writes at the API server: a pause is the
time from the release of a shard, or from the kill, to the first write of each of its autoscalers by the next holder.
It contains the time until the load changes, because a reconcile that changes nothing writes nothing.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from autoscaler.sharding.assignment import shard_of
from bench.process_stats import cpu, memory, series
from tests.control_plane import programs
from tests.integration.service import until
from tests.integration.shard_fleet import HIGHEST, ShardFleet, Timing, shard_fleet, size_of
from tests.integration.write_record import Write, violations

RECONCILES = "horizontal_pod_autoscaler_controller_reconciliations_total"
LOAD_SECONDS = 4.0


@dataclass(frozen=True)
class Pause:
    """How long the autoscalers of moved shards were without a holder, and without a write, in seconds."""

    shards: int
    autoscalers: int
    unheld: float
    """The longest time from the release, or the kill, to the acquisition."""

    median: float
    longest: float

    def __str__(self) -> str:
        return f"{self.shards:>8}{self.autoscalers:>13}{self.unheld:>11.1f}{self.median:>15.1f}{self.longest:>12.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--per-shard", type=int, default=4, help="namespaces per shard; each has two autoscalers")
    parser.add_argument("--seconds", type=float, default=20, help="how long the division of work is measured")
    options = parser.parse_args()
    sizes = {"shards": options.shards, "per_shard": options.per_shard}
    with (
        tempfile.TemporaryDirectory() as folder,
        shard_fleet(Path(folder), programs.require(), **sizes, timing=Timing()) as fleet,
    ):
        print(f"{len(fleet.autoscalers)} autoscalers, {options.shards} shards, lease duration {fleet.timing.lease} s")
        return run(fleet, options.processes, options.seconds)


def run(fleet: ShardFleet, processes: int, seconds: float) -> int:
    """Run all phases and print a table of each."""
    names = [f"p{number}" for number in range(processes)]
    first, joining = names[: (processes + 1) // 2], names[(processes + 1) // 2 :]
    fleet.start(*first)
    _settle(fleet)
    for name in ("follow", "hold"):
        fleet.wait_for_sizes(name, size_of(HIGHEST))
    with fleet.changing_load(LOAD_SECONDS):
        print_division(fleet, seconds)
        joined = _now()
        fleet.start(*joining)
        _settle_under_load(fleet)
        print_division(fleet, seconds)
        killed = _now()
        dead = fleet.kill(names[-1])
        _settle_under_load(fleet)
        left = _now()
        fleet.stop(names[0])
        _settle_under_load(fleet)
        ended = _now()
    writes = fleet.record.read()
    print(f"\n{'':<24}{'shards':>8}{'autoscalers':>13}{'unheld s':>11}{'first write s':>15}{'longest s':>12}")
    print(f"{'join of ' + str(len(joining)):<24}{pause(writes, fleet.shards, joined, killed)}")
    print(f"{'kill -9 of one':<24}{pause(writes, fleet.shards, killed, left, dead.address)}")
    print(f"{'stop of one':<24}{pause(writes, fleet.shards, left, ended)}")
    wrong = violations(writes, fleet.shards)
    lowered = [
        write.key for write in writes if write.is_scale and write.name == "hold" and write.size < size_of(HIGHEST)
    ]
    objects = sum(write.resource != "leases" for write in writes)
    print(f"{objects} writes of objects: {len(wrong)} without the Lease or twice, {len(lowered)} against a window")
    print(*wrong[:10], sep="\n", end="\n" if wrong else "")
    return 1 if wrong or lowered else 0


def _settle(fleet: ShardFleet) -> None:
    """Wait until every process has its share and every autoscaler was reconciled by its holder."""
    floor, more = divmod(fleet.shards, len(fleet.replicas))
    expected = [floor] * (len(fleet.replicas) - more) + [floor + 1] * more
    until(lambda: sorted(fleet.shares().values()) == expected, "the shards are divided evenly")


def _settle_under_load(fleet: ShardFleet) -> None:
    """Wait also until every autoscaler was reconciled by its holder."""
    _settle(fleet)
    fleet.wait_for_reconciles(_now())


def print_division(fleet: ShardFleet, seconds: float) -> None:
    """Print the work of each process in a period."""
    before = {name: (_reconciles(fleet, name), cpu(one.program.pid)) for name, one in fleet.replicas.items()}
    time.sleep(seconds)
    work = {name: _reconciles(fleet, name) - before[name][0] for name in fleet.replicas}
    even, shares = sum(work.values()) / len(work), fleet.shares()
    print(f"\n{'process':<10}{'shards':>8}{'reconciles':>12}{'of even':>9}{'CPU ms/rec':>12}{'MiB':>6}")
    for name, replica in fleet.replicas.items():
        used = (cpu(replica.program.pid) - before[name][1]) / max(work[name], 1) * 1000
        row = f"{name:<10}{shares[name]:>8}{work[name]:>12.0f}{work[name] / even:>9.2f}"
        print(f"{row}{used:>12.2f}{memory(replica.program.pid):>6.0f}")


def _reconciles(fleet: ShardFleet, name: str) -> float:
    return sum(value for _, value in series(fleet.replicas[name].get("/metrics"), RECONCILES))


def pause(writes: Iterable[Write], shards: int, start: datetime, end: datetime, killed: str = "") -> Pause:
    """Return the pauses of the shards that changed their holder in a period."""
    holders: dict[int, str] = {}
    free_since: dict[int, datetime] = {}
    unheld: dict[int, float] = {}
    waiting: dict[int, str] = {}
    first: dict[str, float] = {}
    for write in writes:
        if write.is_shard_lease:
            shard, before = write.shard, holders.get(write.shard, "")
            holders[shard] = write.holder or before
            if not start < write.received < end:
                continue
            if not write.holder:
                free_since[shard] = write.received
            elif before and write.holder != before:
                since = start if killed and before.endswith(killed) else free_since.get(shard, write.received)
                free_since[shard], waiting[shard] = since, write.writer
                unheld[shard] = (write.received - since).total_seconds()
        elif start < write.received < end and waiting.get(shard := shard_of(write.namespace, shards)) == write.writer:
            first.setdefault(write.key, (write.received - free_since[shard]).total_seconds())
    times = list(first.values()) or [0.0]
    return Pause(len(unheld), len(first), max(unheld.values(), default=0), statistics.median(times), max(times))


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - compared with the audit log


if __name__ == "__main__":
    sys.exit(main())

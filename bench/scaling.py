"""Sizes of an installation for many autoscalers, computed from measured constants.

    python -m bench.scaling [--reconcile-ms 0.348] [--change-ms 4.5] ...

Measure the constants on your machine with the programs that `CONSTANTS` names, and pass them as arguments. The table is
an extrapolation: everything is proportional to the number of autoscalers, changes, series, rules and processes.
"""

import argparse
import math
from dataclasses import dataclass, fields
from typing import Final

PERIOD: Final = 15.0
"""Seconds: the sync period."""

FLEETS: Final = (1_000, 10_000, 60_000, 200_000)
_PROCESSES_WITHOUT_SHARDS: Final = 2
_SHARDS_PER_PROCESS: Final = 4
_LEASE_PERIOD: Final = 2.0


_TWO_COUNTS: Final = "bench.fleet --alone with two counts, steady"


@dataclass(frozen=True)
class Constant:
    """A measured constant, and the command that prints it."""

    name: str
    default: float
    unit: str
    command: str


@dataclass(frozen=True)
class Costs:
    """The constants of the model."""

    idle_ms: float
    reconcile_ms: float
    change_ms: float
    api_change_ms: float
    requests_per_change: float
    base_mib: float
    autoscaler_kib: float
    series_bytes: float
    refresh_ms_per_thousand_series: float


CONSTANTS: Final = (
    Constant("idle_ms", 11.4, "ms of CPU per second of a process without autoscalers", _TWO_COUNTS),
    Constant("reconcile_ms", 0.348, "ms of CPU per reconcile without a change", _TWO_COUNTS),
    Constant("change_ms", 4.5, "ms of CPU per rescale", "bench.fleet --alone, 5 % less steady"),
    Constant("api_change_ms", 10.9, "ms of CPU of the API server per rescale", "bench.fleet --alone, 5 %, api ms"),
    Constant("requests_per_change", 3.5, "API requests per rescale", "bench.fleet --alone, 5 %, req/rec"),
    Constant("base_mib", 125.0, "MiB of a process without autoscalers", _TWO_COUNTS),
    Constant("autoscaler_kib", 41.0, "KiB per autoscaler", _TWO_COUNTS),
    Constant("series_bytes", 891.0, "bytes per series of a snapshot", "bench.snapshots"),
    Constant("refresh_ms_per_thousand_series", 4.1, "ms of CPU per refresh of 1,000 series", "bench.snapshots"),
)


@dataclass(frozen=True)
class Fleet:
    """What is controlled."""

    autoscalers: int
    changing: float
    """The fraction of autoscalers that rescale in a sync period."""

    rules: int
    interval: float
    """Seconds between two queries of a rule."""

    series_per_autoscaler: float


@dataclass(frozen=True)
class Size:
    """What a fleet needs."""

    processes: int
    shards: int
    cores: float
    """CPU of all processes."""

    mib: float
    """Memory of one process; with shards, when one of the processes has failed."""

    requests: float
    """API requests per second: changes and Leases."""

    api_cores: float
    queries: float
    """Prometheus queries per second."""


def size(fleet: Fleet, costs: Costs, utilization: float) -> Size:
    """Return the size of the installation in which each process uses at most ``utilization`` of a core."""
    reconciles, changes = fleet.autoscalers / PERIOD, fleet.autoscalers * fleet.changing / PERIOD
    series = fleet.autoscalers * fleet.series_per_autoscaler
    # Every process refreshes the whole snapshot of each rule that its autoscalers read.
    refresh = series / 1000 * costs.refresh_ms_per_thousand_series / fleet.interval / 1000
    own = refresh + costs.idle_ms / 1000
    shared = (reconciles * costs.reconcile_ms + changes * costs.change_ms) / 1000
    if shared + own <= utilization:
        controlling, processes, shards = 1, _PROCESSES_WITHOUT_SHARDS, 1
    elif own < utilization:
        controlling = processes = max(math.ceil(shared / (utilization - own)), _PROCESSES_WITHOUT_SHARDS) + 1
        shards = 2 ** math.ceil(math.log2(processes * _SHARDS_PER_PROCESS))
    else:
        return Size(0, 0, shared, 0, 0, 0, 0)
    share = fleet.autoscalers / max(controlling - 1, 1)
    mib = costs.base_mib + share * costs.autoscaler_kib / 1024 + series * costs.series_bytes / 2**20
    leases = 1 / _LEASE_PERIOD if shards == 1 else shards / _LEASE_PERIOD + processes * 2
    return Size(
        processes,
        shards,
        shared + own * controlling,
        mib,
        changes * costs.requests_per_change + leases,
        changes * costs.api_change_ms / 1000,
        controlling * fleet.rules / fleet.interval,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for constant in CONSTANTS:
        flag = f"--{constant.name.replace('_', '-')}"
        parser.add_argument(flag, type=float, default=constant.default, help=f"{constant.unit}; {constant.command}")
    parser.add_argument("--changing", type=float, default=0.05, help="fraction of autoscalers that rescale in 15 s")
    parser.add_argument("--rules", type=int, default=50)
    parser.add_argument("--interval", type=float, default=4.0, help="seconds between two queries of a rule")
    parser.add_argument("--series", type=float, default=1.0, help="series per autoscaler")
    parser.add_argument("--utilization", type=float, default=0.5, help="of one core, per process")
    options = parser.parse_args()
    costs = Costs(**{field.name: getattr(options, field.name) for field in fields(Costs)})
    print("measured:")
    for constant in CONSTANTS:
        print(f"  {getattr(options, constant.name):>8.3f} {constant.unit} ({constant.command})")
    print(f"extrapolated, {options.changing:.0%} rescale every {PERIOD:g} s, {options.rules} rules:")
    heads = {"autoscalers": 12, "processes": 10, "shards": 8, "cores": 7, "MiB each": 9, "API req/s": 10}
    heads |= {"API cores": 10, "queries/s": 10}
    print("".join(f"{head:>{width}}" for head, width in heads.items()))
    for count in FLEETS:
        fleet = Fleet(count, options.changing, options.rules, options.interval, options.series)
        needed = size(fleet, costs, options.utilization)
        if not needed.processes:
            print(f"{count:>12}  one process cannot refresh the snapshots: a longer --interval, or fewer series")
            continue
        print(
            f"{count:>12}{needed.processes:>10}{needed.shards:>8}{needed.cores:>7.2f}{needed.mib:>9.0f}"
            f"{needed.requests:>10.0f}{needed.api_cores:>10.2f}{needed.queries:>10.0f}"
        )


if __name__ == "__main__":
    main()

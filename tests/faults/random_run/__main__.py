"""Inject random faults, edits and metric values, and check invariants on the record of all writes.

    python -m tests.faults.random_run --virtual --seeds=1000
    python -m tests.faults.random_run --minutes=2 --seed=1
    python -m tests.faults.random_run --mutants

A virtual run has three controller processes in one event loop beside the in-memory API server; twelve minutes take
about a second. A real run has three `steadyscale serve` processes beside a real control plane, each behind its own
proxy. The exit code is 1 if an invariant was violated; the trace is written to the folder of --traces. With --mutants
the controller is broken in one way at a time, and the exit code is 1 if a defect violates no invariant.
"""

import argparse
import logging
import os
import random
import sys
from collections.abc import Iterable
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path

from tests.faults.random_run.mutants import MAX_SEEDS, MUTANTS, find_mutant
from tests.faults.random_run.outcome import Outcome, Total
from tests.faults.random_run.real import run_real
from tests.faults.random_run.virtual import run_seed


def main() -> int:
    """Run the seeds and print the result."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.random_run", description=__doc__)
    parser.add_argument("--virtual", action="store_true", help="run in virtual time, without a control plane")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds (default 1)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="the first seed")
    parser.add_argument("--minutes", type=float, default=2, help="duration of the faults of a real run (default 2)")
    parser.add_argument("--traces", type=Path, default=Path("/tmp/random-run"), help="folder of traces of violations")  # noqa: S108
    parser.add_argument("--mutants", action="store_true", help="check that each known defect of a controller is found")
    options = parser.parse_args()
    if options.mutants:
        return _find_mutants(options.seeds if options.seeds > 1 else MAX_SEEDS)
    print(f"first seed {options.seed}", flush=True)  # noqa: T201
    seeds = range(options.seed, options.seed + options.seeds)
    total = Total()
    for outcome in _virtual(seeds) if options.virtual else _real(seeds, options.minutes):
        total.add(outcome)
        if len(total.seeds) % 20 == 0:
            print(f"{len(total.seeds)} seeds, {len(total.violations)} violations", flush=True)  # noqa: T201
        if outcome.violations:
            options.traces.mkdir(parents=True, exist_ok=True)
            trace = options.traces / f"seed-{outcome.seed}.txt"
            trace.write_text("\n".join(outcome.trace()))
            print(f"seed {outcome.seed}: {outcome.violations[0]}\ntrace: {trace}", flush=True)  # noqa: T201
    print("\n".join(total.lines()), flush=True)  # noqa: T201
    return 1 if total.violations else 0


def _virtual(seeds: Iterable[int]) -> Iterable[Outcome]:
    with _pool() as pool:
        yield from pool.imap_unordered(run_seed, seeds)


def _find_mutants(seeds: int) -> int:
    """Search for a violation with each mutant; return the exit code."""
    with _pool() as pool:
        found = dict(pool.imap_unordered(partial(find_mutant, seeds=range(1, seeds + 1)), MUTANTS))
    for name, violation in found.items():
        print(f"{name}: {violation or f'not found in {seeds} seeds'}")  # noqa: T201
    return 0 if all(found.values()) else 1


def _pool() -> Pool:
    return get_context("spawn").Pool(os.cpu_count(), logging.disable)


def _real(seeds: Iterable[int], minutes: float) -> Iterable[Outcome]:
    for seed in seeds:
        yield run_real(seed, minutes)


if __name__ == "__main__":
    sys.exit(main())

"""Simulate many seeds: ``python -m tests.sharding.simulation --seeds=3000``."""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.sharding.simulation.run import Size, Violation, simulate


def outcome(seed: int) -> tuple[str, int, float]:
    """Return the violation of a run, empty if there is none, the number of writes, and the longest time unheld."""
    try:
        run = simulate(seed)
    except Violation as violation:
        return str(violation), 0, 0.0
    return "", run.writes, run.longest_unheld


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    with ProcessPoolExecutor(options.workers) as pool:
        outcomes = list(pool.map(outcome, seeds, chunksize=10))
    violations = [violation for violation, _, _ in outcomes if violation]
    large = sum(Size.of_seed(seed).processes == 50 for seed in seeds)
    writes, unheld = sum(writes for _, writes, _ in outcomes), max(unheld for _, _, unheld in outcomes)
    summary = (
        f"{len(seeds)} runs, {large} with 50 processes: {writes} writes, longest time without a holder {unheld:.1f} s"
    )
    sys.stdout.write("\n".join([summary, f"{len(violations)} violations", *violations, ""]))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())

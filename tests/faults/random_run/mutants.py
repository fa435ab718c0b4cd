"""Defects of the controller that a random run must find: each removes one safeguard while its block is open.

They show that the generator reaches the states that the safeguards are for, and that the invariants can fail.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from adapter.process import ProcessClock
from autoscaler.algorithm import decide, limit
from autoscaler.controller import persistence
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.run import ControllerProcess
from autoscaler.kube import scale
from autoscaler.kube.client import KubeClient
from autoscaler.kube.freshness import Freshness
from autoscaler.types.history import History
from autoscaler.values.arithmetic import MAX_INT32
from tests.faults.random_run.virtual import run_seed

MAX_SEEDS: Final = 30
"""The number of seeds within which every mutant must be found."""

_limit, _lead = limit.limit, ControllerProcess._lead


def _without_bounds(stabilized: int, current: int, _: tuple[int, int], *rest: Any) -> Any:
    return _limit(stabilized, current, (0, MAX_INT32), *rest)


async def _lead_without_check(process: ControllerProcess, kube: KubeClient, _: Callable[[], bool]) -> None:
    await _lead(process, kube, lambda: True)


def _wall_clock(clock: ProcessClock) -> datetime:
    return clock._wall_clock()


MUTANTS: Final[dict[str, Callable[[], AbstractContextManager[Any]]]] = {
    "scales with outdated watches": partial(patch.object, Dependencies, "outdated", ""),
    "does not measure the age of watched objects": partial(patch.object, Freshness, "age", 0.0),
    "writes without the Lease": partial(patch.object, ControllerProcess, "_lead", _lead_without_check),
    "discards the history at a restart": partial(patch.object, persistence, "decode_history", lambda *_: History()),
    "does not apply the bounds": partial(patch.object, decide, "limit", _without_bounds),
    "treats an unknown outcome as a failure": partial(patch.object, scale, "is_outcome_unknown", lambda _: False),
    "measures durations with the wall clock": partial(patch.object, ProcessClock, "__call__", _wall_clock),
}
"""Returns the context in which the controller has the defect, by its name."""


def find_mutant(name: str, seeds: Iterable[int]) -> tuple[str, str]:
    """Run seeds with a mutant until an invariant is violated; return the name and the first violation, if any."""
    for seed in seeds:
        with MUTANTS[name]():
            outcome = run_seed(seed)
        if outcome.violations:
            return name, f"seed {seed}: {outcome.violations[0]}"
    return name, ""

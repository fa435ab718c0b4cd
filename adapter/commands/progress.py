"""Progress of a long computation, on a terminal only."""

import sys
import time
from collections.abc import Iterator
from typing import Final

from autoscaler.simulation.simulation import SimulatedStep, Simulation

_INTERVAL: Final = 0.2
_STEPS_BETWEEN: Final = 500
_CLEAR: Final = "\r\x1b[K"


def show_progress(text: str) -> None:
    """Replace the last line of the terminal; an empty text removes it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{_CLEAR}{text}")
        sys.stderr.flush()


def with_progress(steps: Iterator[SimulatedStep], simulation: Simulation, title: str) -> Iterator[SimulatedStep]:
    """Yield the steps, and show the progress."""
    start, shown = simulation.scenario.start, 0.0
    length = simulation.scenario.end - start
    for number, step in enumerate(steps):
        if number % _STEPS_BETWEEN == 0 and time.monotonic() - shown > _INTERVAL:
            shown = time.monotonic()
            show_progress(f"{title}: {(step.decision.at - start) / length:.0%}")
        yield step
    show_progress("")

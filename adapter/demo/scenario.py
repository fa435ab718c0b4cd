"""The scenario of the demo: the order rate and the availability of the metrics backend over time.

Nothing else is scripted; every replica count is a decision of the autoscaler.
"""

from datetime import timedelta
from random import Random
from typing import Final, NamedTuple


class Phase(NamedTuple):
    """A part of the scenario."""

    start: timedelta
    """Time since the start of the demo."""

    text: str
    orders_per_second: float
    backend_is_up: bool = True


def _minute(number: float) -> timedelta:
    return timedelta(minutes=number)


PHASES: Final = (
    Phase(_minute(0), "Quiet morning: 0.3 orders per second.", 0.3),
    Phase(_minute(2), "Rush: 6 orders per second.", 6),
    Phase(_minute(7), "The metrics backend goes down: the queue length is unknown.", 6, backend_is_up=False),
    Phase(_minute(8), "During the outage, orders increase to 11 per second.", 11, backend_is_up=False),
    Phase(_minute(13), "The metrics backend is up again.", 11),
    Phase(_minute(16), "The rush is over: 0.3 orders per second.", 0.3),
    Phase(_minute(21), "The shop closes: no orders.", 0),
    Phase(_minute(26), "The shop opens: 0.3 orders per second.", 0.3),
)
END: Final = _minute(29)

_RANDOM_PHASE_LENGTH: Final = _minute(5)
_RANDOM_RATES: Final = (0.0, 0.3, 1.0, 3.0, 6.0)


def phase(index: int, random: Random) -> Phase:
    """Return a phase of the scenario; after the last one, phases with random order rates."""
    if index < len(PHASES):
        return PHASES[index]
    rate = random.choice(_RANDOM_RATES)
    start = END + _RANDOM_PHASE_LENGTH * (index - len(PHASES))
    return Phase(start, f"Random load: {rate:g} orders per second.", rate)

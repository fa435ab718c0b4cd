"""The day that the demonstration plays: how many orders come, and whether the metrics backend is up.

Nothing else is written down here; every replica count is the autoscaler's own.
"""

from datetime import timedelta
from random import Random
from typing import Final, NamedTuple


class Scene(NamedTuple):
    """What the world does from a time on."""

    at: timedelta
    """Since the beginning of the day."""

    says: str
    rate: float
    """Orders a second."""

    backend_is_up: bool = True


def _minute(number: float) -> timedelta:
    return timedelta(minutes=number)


DAY: Final = (
    Scene(_minute(0), "A quiet morning: an order every three seconds or so.", 0.3),
    Scene(_minute(2), "The rush begins: six orders a second.", 6),
    Scene(_minute(7), "The metrics backend goes down. Nobody can see the queue any more.", 6, backend_is_up=False),
    Scene(_minute(8), "And now, unseen, the rush grows: eleven orders a second.", 11, backend_is_up=False),
    Scene(_minute(13), "The metrics backend is back.", 11),
    Scene(_minute(16), "The rush is over.", 0.3),
    Scene(_minute(21), "The shop closes: no more orders.", 0),
    Scene(_minute(26), "Next morning, the first order.", 0.3),
)
ENDS: Final = _minute(29)

_LATER: Final = _minute(5)
_RATES: Final = (0.0, 0.3, 1.0, 3.0, 6.0)


def scene_after(number: int, chance: Random) -> Scene:
    """Give the scene of this number: the day's, and then an ordinary day without end."""
    if number < len(DAY):
        return DAY[number]
    rate = chance.choice(_RATES)
    told = f"about {rate:g} orders a second" if rate else "no orders at all"
    return Scene(ENDS + _LATER * (number - len(DAY)), f"An ordinary day: {told}.", rate)

"""How often a query is sent: at the interval of its rules, or at one that is adapted to what the query costs.

The adaptive interval of a query is fifty times its duration, within ``MIN_ADAPTIVE_INTERVAL`` and ``DEFAULT_INTERVAL``:
a cheap query is sent every 4 seconds, and one that takes 300 ms or longer every 15 seconds.
"""

import math
from datetime import timedelta
from typing import Final

from adapter.rules.rule import DEFAULT_INTERVAL

MIN_ADAPTIVE_INTERVAL: Final = timedelta(seconds=4)
_DURATIONS_PER_INTERVAL: Final = 50
_WEIGHT: Final = 0.5
"""Of the newest duration in the moving average of durations."""


class RefreshInterval:
    """The interval of one query; several rules can share the query."""

    __slots__ = ("_adapts", "_configured", "_duration", "_is_adaptive", "_shortest", "current")

    def __init__(self, *, adapts: bool = False) -> None:
        """Create an interval; ``adapts`` is whether it is adaptive if a rule has none."""
        self.current = timedelta.max
        self._adapts = adapts
        self._is_adaptive = False
        self._configured = timedelta.max
        self._duration: timedelta | None = None
        self._shortest = MIN_ADAPTIVE_INTERVAL

    def include(self, interval: timedelta | None) -> bool:
        """Use the shortest interval of all rules that share the query; return whether it is shorter than before."""
        if interval is None and self._adapts:
            if self._is_adaptive:
                return False
            self._is_adaptive = True
        else:
            configured = DEFAULT_INTERVAL if interval is None else interval
            if configured >= self._configured:
                return False
            self._configured = configured
        before = self.current
        self._update()
        return self.current < before

    def record(self, duration: timedelta, shortest: timedelta) -> None:
        """Adapt to the duration of the last response; ``shortest`` is what a budget allows."""
        self._duration = duration if self._duration is None else self._duration + (duration - self._duration) * _WEIGHT
        self._shortest = max(shortest, MIN_ADAPTIVE_INTERVAL)
        self._update()

    def _update(self) -> None:
        self.current = self._configured
        if self._is_adaptive:
            by_cost = (self._duration or timedelta()) * _DURATIONS_PER_INTERVAL
            seconds = math.ceil(max(by_cost, self._shortest).total_seconds())
            self.current = min(self._configured, DEFAULT_INTERVAL, timedelta(seconds=seconds))

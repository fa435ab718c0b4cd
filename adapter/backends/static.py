"""The backend of fixed values from the configuration, for trying things out and for tests."""

from collections.abc import Callable
from datetime import datetime, timedelta

from adapter.rules.query_builder import Query
from adapter.rules.rule import STATIC
from adapter.sample import RawSample


class StaticBackend:
    """Returns the values in the rule, with current timestamps."""

    name = STATIC

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:  # noqa: ARG002 - never blocks
        now = self._clock()
        return tuple(RawSample(series.value, now - series.age, series.labels) for series in query.static_series)

    async def ping(self) -> None:
        """Do nothing: there is no server."""

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""

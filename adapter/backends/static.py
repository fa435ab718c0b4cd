"""Fixed numbers from the configuration: for a first look, for rehearsals and for tests."""

from collections.abc import Callable
from datetime import datetime, timedelta

from adapter.rules.query_builder import Query
from adapter.rules.rule import STATIC
from adapter.sample import RawSample


class StaticBackend:
    """Answers with the numbers written in the rule, as of now."""

    name = STATIC

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:  # noqa: ARG002 - always in time
        """Return the rule's own numbers."""
        now = self._clock()
        return tuple(RawSample(series.value, now - series.age, series.labels) for series in query.static_series)

    async def ping(self) -> None:
        """Return; there is nobody to ask."""

    async def aclose(self) -> None:
        """Return; there is nothing to let go of."""

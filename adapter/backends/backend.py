"""What every metric system looks like from here."""

from datetime import timedelta
from typing import Protocol, runtime_checkable

from adapter.rules.query_builder import Query
from adapter.sample import RawSample


class Backend(Protocol):
    """A client of one metric system.

    It raises a ``BackendError`` that says in constant words why there is no answer (``BadQuery("parse error")``), with
    what the system itself said in ``detail``. Which metric was asked for is added by who asked.
    """

    @property
    def name(self) -> str:
        """What to call it in a message: the hop that failed."""

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return all series that the query finds, perhaps none; raise ``BackendError`` if that cannot be known in time.

        A series whose number is NaN, negative or old is returned as it is: it is no reason to withhold the others.
        """

    async def ping(self) -> None:
        """Return if the system answers at all; raise ``BackendError`` if not."""

    async def aclose(self) -> None:
        """Let go of connections and threads."""


@runtime_checkable
class Aligned(Protocol):
    """What a backend has besides if it sends the questions of many rules as one: they should be asked together."""

    @property
    def aligned(self) -> bool:
        """Whether the queries of one interval are all to be fetched at the same moments."""

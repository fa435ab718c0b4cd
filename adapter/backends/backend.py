"""The interface of all backends."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol, runtime_checkable

from adapter.rules.query_builder import Query
from adapter.sample import RawSample


class Backend(Protocol):
    """A client of one metric system.

    It raises ``BackendError`` with a message that is the same whenever the cause is the same, such as
    ``BadQuery("parse error")``, and the metric system's own text in ``detail``. The reader adds the metric's name.
    """

    @property
    def name(self) -> str:
        """The backend's name in the configuration and in messages."""

    async def fetch(self, query: Query, deadline: timedelta) -> Sequence[RawSample]:
        """Return all series of a query; raise ``BackendError`` if they cannot be fetched before the deadline.

        Series whose value is NaN, negative or old are returned, too: evaluation rejects them one by one. A result with
        many series is a ``SeriesTable``.
        """

    async def ping(self) -> None:
        """Raise ``BackendError`` if the metric system does not respond."""

    async def aclose(self) -> None:
        """End running requests, then close connections."""


@runtime_checkable
class Aligned(Protocol):
    """An additional property of backends that send the queries of several rules in one request."""

    @property
    def aligned(self) -> bool:
        """Whether all queries with the same interval are to be fetched at the same moments."""

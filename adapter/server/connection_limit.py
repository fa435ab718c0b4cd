"""The maximum number of open connections, shared fairly between source addresses.

A new connection above the limit displaces an old one: refusing new connections would let a client that opens many and
keeps them exclude all others. The source address with the most connections loses one, so a client cannot displace the
connections of clients that have fewer. A client that has the most itself displaces only connections that were not used
for a second; this limits the rate of TLS handshakes, and leaves a connection the time to complete its own.

Connections of the front proxy are a class of their own: the API server has many, and other clients never displace them.
"""

from typing import Final, Generic, Protocol, TypeVar

_MIN_AGE: Final = 1.0


class HasSource(Protocol):
    """A connection and where it comes from."""

    source: str
    is_front_proxy: bool
    """Must not change while the connection is counted."""


C = TypeVar("C", bound=HasSource)


class ConnectionLimit(Generic[C]):
    """Open connections by source, in each source the least recently used first."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._count = 0
        self._by_source: dict[str, dict[C, float]] = {}
        """For each connection, when it was added or used last; without those of the front proxy."""

        self._front_proxy: dict[C, float] = {}

    def __len__(self) -> int:
        return self._count

    def __contains__(self, connection: C) -> bool:
        return connection in self._group(connection)

    def admits(self, source: str, now: float) -> bool:
        """Return whether a new connection of this source may be opened."""
        if self._count < self._maximum:
            return True
        displaced = self._displaced(source)
        return displaced is not None and (displaced[0].source != source or now - displaced[1] >= _MIN_AGE)

    def add(self, connection: C, now: float) -> C | None:
        """Add a connection; return the one that must be closed, if there are too many now.

        That is the new connection itself, if all others are connections of the front proxy.
        """
        displaced: C | None = None
        if self._count >= self._maximum:
            displaced = self._displaced_by(connection)
            if displaced is connection:
                return connection
            self.remove(displaced)
        if connection.is_front_proxy:
            self._front_proxy[connection] = now
        else:
            self._by_source.setdefault(connection.source, {})[connection] = now
        self._count += 1
        return displaced

    def touch(self, connection: C, now: float) -> None:
        """Note that the connection is used now."""
        connections = self._group(connection)
        del connections[connection]
        connections[connection] = now

    def remove(self, connection: C) -> None:
        """Remove a connection; one that is not there is ignored."""
        connections = self._group(connection)
        if connection not in connections:
            return
        del connections[connection]
        self._count -= 1
        if not connections and not connection.is_front_proxy:
            del self._by_source[connection.source]

    def _group(self, connection: C) -> dict[C, float]:
        return self._front_proxy if connection.is_front_proxy else self._by_source.get(connection.source, {})

    def _displaced_by(self, connection: C) -> C:
        if displaced := self._displaced(connection.source):
            return displaced[0]
        return next(iter(self._front_proxy)) if connection.is_front_proxy else connection

    def _displaced(self, source: str) -> tuple[C, float] | None:
        """Return the connection that a new one of this source displaces, and when it was used last; None if none is."""
        if not self._by_source:
            return None
        most = max(self._by_source.values(), key=len)
        own = self._by_source.get(source, {})
        return next(iter((own if len(own) == len(most) else most).items()))

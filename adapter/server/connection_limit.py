"""The maximum number of open connections, shared fairly between source addresses.

A new connection above the limit displaces an old one: refusing new connections would let a client that opens many and
keeps them exclude all others. The source address with the most connections loses one, so a client cannot displace the
connections of clients that have fewer. A client that has the most itself displaces only connections that were not used
for a second; this limits the rate of TLS handshakes, and leaves a connection the time to complete its own.
"""

from typing import Final, Generic, Protocol, TypeVar

_MIN_AGE: Final = 1.0


class HasSource(Protocol):
    """A connection and where it comes from."""

    source: str


C = TypeVar("C", bound=HasSource)


class ConnectionLimit(Generic[C]):
    """Open connections by source, in each source the least recently used first."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._count = 0
        self._by_source: dict[str, dict[C, float]] = {}
        """For each connection, when it was added or used last."""

    def __len__(self) -> int:
        return self._count

    def __contains__(self, connection: C) -> bool:
        return connection in self._by_source.get(connection.source, ())

    def admits(self, source: str, now: float) -> bool:
        """Return whether a new connection of this source may be opened."""
        if self._count < self._maximum:
            return True
        displaced, used = self._displaced(source)
        return displaced.source != source or now - used >= _MIN_AGE

    def add(self, connection: C, now: float) -> C | None:
        """Add a connection; return the one that must be closed, if there are too many now."""
        displaced = self._displaced(connection.source)[0] if self._count >= self._maximum else None
        if displaced is not None:
            self.remove(displaced)
        self._by_source.setdefault(connection.source, {})[connection] = now
        self._count += 1
        return displaced

    def touch(self, connection: C, now: float) -> None:
        """Note that the connection is used now."""
        connections = self._by_source[connection.source]
        del connections[connection]
        connections[connection] = now

    def remove(self, connection: C) -> None:
        """Remove a connection; one that is not there is ignored."""
        connections = self._by_source.get(connection.source, {})
        if connection not in connections:
            return
        del connections[connection]
        self._count -= 1
        if not connections:
            del self._by_source[connection.source]

    def _displaced(self, source: str) -> tuple[C, float]:
        """Return the connection that a new one of this source displaces, and when it was used last."""
        most = max(self._by_source.values(), key=len)
        own = self._by_source.get(source, {})
        return next(iter((own if len(own) == len(most) else most).items()))

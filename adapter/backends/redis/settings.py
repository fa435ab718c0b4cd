"""Which Redis, and what of its keys."""

from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from adapter.backends.connection.address import address_problems
from adapter.backends.settings import (
    BackendSettings,
    CircuitBreakerSettings,
    Parameters,
    Tls,
    at_least_one,
    tls_problems,
)
from autoscaler.types.record import Record

PORT: Final = 6379
SENTINEL_PORT: Final = 26379
OF_GROUPS: Final = frozenset({"pending", "lag"})
OF_STREAMS: Final = OF_GROUPS | {"streamLength"}


class RedisParameters(Parameters, frozen=True):
    """Which keys, and what of them."""

    key: str = ""
    """One key; the answer is one series, with the label ``key``."""

    keys: str = ""
    """Instead: a pattern as Redis has them (``queue:*``); each key that matches and is of the right type is a series.
    The whole database is walked for it (``SCAN``), so prefer ``key`` where the database is large."""

    reads: Literal["listLength", "streamLength", "pending", "lag", "setSize", "sortedSetSize", "hashSize"] = (
        "listLength"
    )
    """How many elements a list, a stream, a set, a sorted set or a hash has. Of a stream's consumer groups:
    ``pending``, delivered and not yet acknowledged; ``lag``, not yet delivered: NaN where Redis lost count, or is older
    than 7."""

    group: str = ""
    """With ``pending`` and ``lag``: which consumer group. Left out: each is a series, with the label ``group``."""

    missing: Literal["zero", "none"] | None = None
    """What a ``key`` is that does not exist: 0 or no series. Left out: 0 for lists, sets, sorted sets and hashes, which
    Redis removes with their last element, so that an empty queue does not exist; no series for streams and groups,
    which stay when they are empty."""

    @property
    def is_zero_if_missing(self) -> bool:
        """Say whether what is not there is empty."""
        return self.missing == "zero" or (self.missing is None and self.reads not in OF_STREAMS)

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        if bool(self.key) == bool(self.keys):
            yield f"{at}.key: either this or keys is needed"
        if self.group and self.reads not in OF_GROUPS:
            yield f"{at}.group: only pending and lag are of a group; {self.reads} is not"
        if self.missing and self.keys:
            yield f"{at}.missing: is for key; a pattern finds only what there is"
        if self.missing == "zero" and self.reads in OF_GROUPS and not self.group:
            yield f"{at}.missing: zero needs group, or nobody knows which group is at zero"


class RedisSentinel(Record, frozen=True):
    """Sentinels that know which node is the master."""

    master: str
    """What they call it (``mymaster``)."""

    username: str = ""
    """Whom to say we are to the sentinels, which have users of their own; left out: their default user."""

    password_file: str = ""
    """Their password, if they want one; read at every connection."""


class Redis(BackendSettings, frozen=True):
    """A Redis, or what speaks its protocol: alone, behind sentinels or as a cluster."""

    opened_by: ClassVar[str] = "adapter.backends.redis.backend:RedisBackend"
    library: ClassVar[tuple[str, ...]] = ("redis",)
    extra: ClassVar[str] = "redis"
    asked_with: ClassVar[type[Parameters] | None] = RedisParameters
    rules_write_labels: ClassVar[bool] = True  # a key's name does not say whose it is

    addresses: tuple[str, ...]
    """Where it is: ``host:port``. Of a cluster some of its nodes, with ``sentinel`` the sentinels, tried in turn."""

    cluster: bool = False
    """Whether it is a cluster: keys are asked for where they are."""

    sentinel: RedisSentinel | None = None
    database: int = 0
    """Which of its databases."""

    username: str = ""
    """Whom to say we are; left out: Redis' default user."""

    password_file: str = ""
    """Read at every connection, so that the password can be changed."""

    tls: Tls | None = None
    """Set, if only to ``{}``: the connection is encrypted."""

    connections: int = 4
    """At once, to each node."""

    most_keys: int = 1000
    """Keys that a pattern may find. More are refused: part of them would be a wrong number."""

    breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        yield from address_problems(self.addresses, f"{at}.addresses")
        if len(self.addresses) > 1 and not self.cluster and self.sentinel is None:
            yield f"{at}.addresses: several are for cluster: true or sentinel; a single Redis has one"
        if self.cluster and self.sentinel is not None:
            yield f"{at}.cluster: excludes sentinel"
        if self.database < 0 or (self.cluster and self.database):
            yield f"{at}.database: must be 0{' in a cluster' if self.cluster else ' or more'}, is {self.database}"
        if self.username and not self.password_file:
            yield f"{at}.passwordFile: is needed with username"
        if self.sentinel is not None and not self.sentinel.master:
            yield f"{at}.sentinel.master: must not be empty"
        if self.sentinel is not None and self.sentinel.username and not self.sentinel.password_file:
            yield f"{at}.sentinel.passwordFile: is needed with username"
        if self.tls is not None:
            yield from tls_problems(self.tls, f"{at}.tls")
        counts = {"connections": self.connections, "mostKeys": self.most_keys}
        yield from at_least_one({**counts, "breaker.failures": self.breaker.failures}, at)

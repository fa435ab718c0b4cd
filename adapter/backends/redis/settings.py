"""Settings of the Redis backend and the parameters of its rules."""

from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from adapter.backends.connection.address import address_problems
from adapter.backends.settings import BackendSettings, CircuitBreakerSettings, Parameters, Tls, connection_problems
from adapter.decoding.problem import Problem
from autoscaler.types.record import Record

PORT: Final = 6379
SENTINEL_PORT: Final = 26379
GROUP_MEASURES: Final = frozenset({"pending", "lag"})
_STREAM_MEASURES: Final = GROUP_MEASURES | {"streamLength"}


class RedisParameters(Parameters, frozen=True):
    """One or more keys, and what to measure."""

    selecting: ClassVar[tuple[str, ...]] = ("key", "keys", "group")

    key: str = ""
    """Name of one key. The result is one series with the label ``key``."""

    keys: str = ""
    """Instead of ``key``: a glob-style pattern of Redis, such as ``queue:*``. Each matching key of the right type is a
    series. The whole database is scanned (``SCAN``), so prefer ``key`` in large databases."""

    measure: Literal["listLength", "streamLength", "pending", "lag", "setSize", "sortedSetSize", "hashSize"] = (
        "listLength"
    )
    """What to measure: the number of elements of a list, stream, set, sorted set or hash; or, for the consumer groups
    of a stream, ``pending``, messages that are delivered and not acknowledged, or ``lag``, messages that are not
    delivered yet. ``lag`` is NaN if Redis lost count, or is older than version 7. The default is the usual length of a
    work queue."""

    group: str = ""
    """Consumer group for ``pending`` and ``lag``. Default: each group is a series with the label ``group``."""

    missing: Literal["zero", "none"] | None = None
    """Result for a ``key`` that does not exist: the value 0 or no series. Default: ``zero`` for lists, sets, sorted
    sets and hashes, because Redis deletes a key with its last element, so that an empty queue does not exist; ``none``
    for streams and groups, which exist while they are empty."""

    @property
    def is_zero_if_missing(self) -> bool:
        return self.missing == "zero" or (self.missing is None and self.measure not in _STREAM_MEASURES)

    def problems(self, path: str) -> Iterator[Problem]:
        if bool(self.key) == bool(self.keys):
            yield Problem(f"{path}.key", "exactly one of key and keys is required")
        if self.group and self.measure not in GROUP_MEASURES:
            yield Problem(f"{path}.group", f"cannot be used with measure {self.measure}", hint="use pending or lag")
        if self.missing and self.keys:
            yield Problem(f"{path}.missing", "cannot be used with keys", hint="a pattern matches existing keys only")
        if self.missing == "zero" and self.measure in GROUP_MEASURES and not self.group:
            yield Problem(f"{path}.missing", "zero requires group, because the result needs the label group")


class RedisSentinel(Record, frozen=True):
    """Sentinels, which know the address of the current master."""

    master: str
    """Name of the master in the configuration of the sentinels, often ``mymaster``."""

    username: str = ""
    """User for the sentinels, which have users of their own. Default: their default user."""

    password_file: str = ""
    """File with the password for the sentinels, if they require one. Read at every connection."""


class Redis(BackendSettings, frozen=True):
    """A Redis-compatible server: standalone, behind Sentinel or as a cluster."""

    backend_class: ClassVar[str] = "adapter.backends.redis.backend:RedisBackend"
    required_modules: ClassVar[tuple[str, ...]] = ("redis",)
    extra: ClassVar[str] = "redis"
    parameters_type: ClassVar[type[Parameters] | None] = RedisParameters
    has_adaptive_interval: ClassVar[bool] = True
    labels_controlled_by_rules: ClassVar[bool] = True  # the name of a key does not identify its owner

    addresses: tuple[str, ...]
    """Address of the server as ``host:port``. For a cluster, some of its nodes; with ``sentinel``, the sentinels. They
    are tried in order. Default port: 6379, for sentinels 26379."""

    cluster: bool = False
    """Whether the server is a Redis Cluster."""

    sentinel: RedisSentinel | None = None
    """Set: ``addresses`` are sentinels, and commands are sent to the master that they name."""

    database: int = 0
    """Number of the database."""

    username: str = ""
    """ACL user. Default: the default user of Redis."""

    password_file: str = ""
    """File with the password, read at every connection, so that the password can be rotated."""

    tls: Tls | None = None
    """Set, even to ``{}``: connections use TLS."""

    max_connections: int = 4
    """Maximum number of connections to each node."""

    max_keys: int = 1000
    """Maximum number of keys that a pattern may match. More are an error, because a part of them would be a wrong
    value."""

    circuit_breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    def problems(self, path: str) -> Iterator[Problem]:
        yield from address_problems(self.addresses, f"{path}.addresses")
        if len(self.addresses) > 1 and not self.cluster and self.sentinel is None:
            yield Problem(f"{path}.addresses", "several addresses require cluster: true or sentinel")
        if self.cluster and self.sentinel is not None:
            yield Problem(f"{path}.cluster", "cannot be combined with sentinel")
        if self.database < 0 or (self.cluster and self.database):
            limit = "0 in a cluster" if self.cluster else "0 or more"
            yield Problem(f"{path}.database", f"must be {limit}", value=self.database)
        if self.username and not self.password_file:
            yield Problem(f"{path}.passwordFile", "required with username")
        if self.sentinel is not None and not self.sentinel.master:
            yield Problem(f"{path}.sentinel.master", "must not be empty")
        if self.sentinel is not None and self.sentinel.username and not self.sentinel.password_file:
            yield Problem(f"{path}.sentinel.passwordFile", "required with username")
        counts = {"maxConnections": self.max_connections, "maxKeys": self.max_keys}
        yield from connection_problems(self.tls, self.circuit_breaker, counts, path)

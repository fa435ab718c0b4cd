"""What to ask of a key, and from what Redis says to samples; pure."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from adapter.backends.redis.settings import OF_GROUPS, RedisParameters
from adapter.errors import BackendRejected
from adapter.sample import RawSample

_COMMANDS: Final = {
    "listLength": ("LLEN", "list"),
    "streamLength": ("XLEN", "stream"),
    "setSize": ("SCARD", "set"),
    "sortedSetSize": ("ZCARD", "zset"),
    "hashSize": ("HLEN", "hash"),
    "pending": ("XINFO", "stream"),
    "lag": ("XINFO", "stream"),
}
_AT_ONCE: Final = 500
"""Keys that Redis looks at in one step of a walk: it answers nobody else meanwhile."""


class Group(NamedTuple):
    """What Redis knows of a consumer group."""

    name: bytes
    pending: float
    lag: float


def reading(reads: str, key: str | bytes) -> tuple[str | bytes, ...]:
    """Give the command that reads a key."""
    command = _COMMANDS[reads][0]
    return (command, "GROUPS", key) if reads in OF_GROUPS else (command, key)


def walking(asked: RedisParameters, cursor: int) -> tuple[str | bytes | int, ...]:
    """Give the command for the next keys that match."""
    return ("SCAN", cursor, "MATCH", asked.keys, "COUNT", _AT_ONCE, "TYPE", _COMMANDS[asked.reads][1])


def walked(said: Any) -> tuple[int, list[bytes]]:  # noqa: ANN401 - anything may be said
    """Read an answer to that: where to go on, and the keys."""
    match said:
        case [bytes() as cursor, [*keys]] if cursor.isdigit() and all(isinstance(key, bytes) for key in keys):
            return int(cursor), keys
    raise _nonsense(said)


def is_there(said: Any) -> bool:  # noqa: ANN401
    """Read an answer to EXISTS."""
    return _count(said) > 0


def is_no_such_key(error: object) -> bool:
    """Say whether that is how a stream is told not to exist."""
    return "no such key" in str(error)


def samples(asked: RedisParameters, key: bytes, said: Any, now: datetime) -> Iterator[RawSample]:  # noqa: ANN401
    """Make a series of a key, or one of each of its groups."""
    labels = {"key": _text(key)}
    if asked.reads not in OF_GROUPS:
        yield RawSample(_count(said), now, labels)
        return
    for group in _groups(said):
        if asked.group in {"", _text(group.name)}:
            number = group.pending if asked.reads == "pending" else group.lag
            yield RawSample(number, now, {**labels, "group": _text(group.name)})


def nothing(asked: RedisParameters, now: datetime) -> Iterator[RawSample]:
    """Say what a key or a group is that does not exist."""
    if asked.is_zero_if_missing:
        group = {"group": asked.group} if asked.reads in OF_GROUPS else {}
        yield RawSample(0, now, {"key": asked.key, **group})


def _count(said: Any) -> float:  # noqa: ANN401
    if not isinstance(said, int):
        raise _nonsense(said)
    return float(said)


def _groups(said: Any) -> Iterator[Group]:  # noqa: ANN401
    if not isinstance(said, list) or not all(isinstance(each, list) for each in said):
        raise _nonsense(said)
    for each in said:
        fields = _pairs(each)
        name = fields.get(b"name")
        if not isinstance(name, bytes):
            raise _nonsense(said)
        yield Group(name, _known(fields.get(b"pending")), _known(fields.get(b"lag")))


def _pairs(said: Sequence[Any]) -> dict[bytes, Any]:
    keys = said[::2]
    if not all(isinstance(key, bytes) for key in keys):
        raise _nonsense(said)
    return dict(zip(keys, said[1::2], strict=False))


def _known(number: Any) -> float:  # noqa: ANN401
    """Give a number, or none: Redis before 7 has no lag, and later ones lose count when messages are deleted."""
    return float(number) if isinstance(number, int) else math.nan


def _text(name: bytes) -> str:
    """Make a label of a name, which may be any bytes."""
    return name.decode("utf-8", "backslashreplace")


def _nonsense(said: object) -> BackendRejected:
    return BackendRejected("it answers, but not as Redis does", detail=type(said).__name__)

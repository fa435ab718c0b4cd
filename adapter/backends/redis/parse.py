"""Commands that measure keys, and conversion of the replies to samples. Pure code."""

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from adapter.backends.redis.errors import UNEXPECTED
from adapter.backends.redis.settings import GROUP_MEASURES, RedisParameters
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
"""Command and key type by measure."""

_SCAN_COUNT: Final = 500  # keys that Redis inspects in one step of a scan; it is blocked for other clients meanwhile


def measure_command(measure: str, key: str | bytes) -> tuple[str | bytes, ...]:
    command = _COMMANDS[measure][0]
    return (command, "GROUPS", key) if measure in GROUP_MEASURES else (command, key)


def scan_command(wanted: RedisParameters, cursor: int) -> tuple[str | bytes | int, ...]:
    return ("SCAN", cursor, "MATCH", wanted.keys, "COUNT", _SCAN_COUNT, "TYPE", _COMMANDS[wanted.measure][1])


def parse_scan(reply: Any) -> tuple[int, list[bytes]]:  # noqa: ANN401 - a reply can be anything
    match reply:
        case [bytes() as cursor, [*keys]] if cursor.isdigit() and all(isinstance(key, bytes) for key in keys):
            return int(cursor), keys
    raise _unexpected(reply)


def is_key_missing(reply: object) -> bool:
    """Return whether a reply is the error of XINFO for a stream that does not exist."""
    return "no such key" in str(reply)


def samples(wanted: RedisParameters, key: bytes, reply: Any, now: datetime) -> Iterator[RawSample]:  # noqa: ANN401
    """Yield a sample for a key, or for each of its consumer groups."""
    labels = {"key": _text(key)}
    if wanted.measure not in GROUP_MEASURES:
        yield RawSample(parse_count(reply), now, labels)
        return
    if not isinstance(reply, list):
        raise _unexpected(reply)
    for group in map(_fields, reply):
        name = _text(group[b"name"])
        if wanted.group in {"", name}:
            value = group.get(wanted.measure.encode())
            # Redis has no lag before version 7, and loses count when messages are deleted.
            yield RawSample(float(value) if isinstance(value, int) else math.nan, now, {**labels, "group": name})


def samples_of_missing_key(wanted: RedisParameters, now: datetime) -> Iterator[RawSample]:
    """Yield the sample for a key or group that does not exist, if it counts as zero."""
    if wanted.is_zero_if_missing:
        group = {"group": wanted.group} if wanted.measure in GROUP_MEASURES else {}
        yield RawSample(0, now, {"key": wanted.key, **group})


def parse_count(reply: Any) -> float:  # noqa: ANN401
    if not isinstance(reply, int):
        raise _unexpected(reply)
    return float(reply)


def _fields(reply: Any) -> dict[bytes, Any]:  # noqa: ANN401
    """Return the fields of a consumer group, which are a flat list of names and values."""
    if not isinstance(reply, list) or not all(isinstance(key, bytes) for key in reply[::2]):
        raise _unexpected(reply)
    fields = dict(zip(reply[::2], reply[1::2], strict=False))
    if not isinstance(fields.get(b"name"), bytes):
        raise _unexpected(reply)
    return fields


def _text(name: bytes) -> str:
    """Return a name, which may be any bytes, as a label value."""
    return name.decode("utf-8", "backslashreplace")


def _unexpected(reply: object) -> BackendRejected:
    return BackendRejected(UNEXPECTED, detail=type(reply).__name__)

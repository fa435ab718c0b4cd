"""Segments: the records of all autoscalers in one period, compressed together into one object of the store. Pure.

Records of many autoscalers are compressed together because they have most of their text in common. The information
about a segment contains a hash of each key in it, so that a reader fetches only the segments of one autoscaler.
"""

import lzma
import struct
import zlib
from array import array
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from adapter.history.records import DecisionRecord, decode
from autoscaler.sharding.held_shards import HeldShards
from autoscaler.types.record import Record

MAX_RAW_BYTES: Final = 2**20
"""Size of a full segment before compression: about 700 records, 35 KiB compressed. Text in UTF-8 contains at most
seven eighths of its size in information, so that a compressed segment always fits into the 1 MiB of a ConfigMap."""

_MAX_DECODED_BYTES: Final = 4 * 2**20
_METADATA_BYTES: Final = 1024
"""Size of the metadata of a ConfigMap without the hashes of keys."""

_PRESET: Final = 1
"""The dictionary of 1 MiB covers a whole segment; with the 32 KiB of zlib it would be twice as large."""


class SegmentInfo(Record):
    """What is known about a segment without its records."""

    term: str
    """The term as leader in which it was written: unique, so that no two processes write the same segment."""

    sequence: int
    holder: str
    """Identity of the leader."""

    start: datetime
    until: datetime
    """Every recorded decision between these times is in this segment."""

    records: int = 0
    size: int = 0
    """Compressed size in bytes."""

    keys: str = ""
    """Sorted hashes of the keys of the autoscalers in it, see `pack_keys`."""

    is_sealed: bool = False
    """Whether it is complete and never changes."""

    ends_term: bool = False
    """Whether the leader ended its term in an orderly way with it."""

    shards: HeldShards = HeldShards()
    """The shards that the process controlled; only decisions about autoscalers in them are recorded."""

    @property
    def name(self) -> str:
        return segment_name(self.term, self.sequence)

    def covers(self, key: str) -> bool:
        """Return whether the process controlled an autoscaler, if it existed."""
        return self.shards.contains(key.partition("/")[0])

    def may_contain(self, key: str) -> bool:
        """Return whether the segment contains records of an autoscaler; one in a hundred positives is false."""
        return has_key(self.keys, key)


def segment_name(term: str, sequence: int) -> str:
    return f"decision-history-{term}-{sequence:06}"


class StoredEntry(msgspec.Struct, array_like=True, frozen=True):
    """A record with its key, decoded only if the key is wanted."""

    key: str
    record: msgspec.Raw


def encode_entry(key: str, record: bytes) -> bytes:
    return msgspec.msgpack.encode(StoredEntry(key, msgspec.Raw(record)))


def compress(entries: Sequence[bytes]) -> bytes:
    """Return encoded entries as one compressed MessagePack array."""
    header = b"\xdd" + struct.pack(">I", len(entries))  # an array with a length of 32 bits
    return lzma.compress(header + b"".join(entries), preset=_PRESET)


def records_in(compressed: bytes, key: str) -> tuple[DecisionRecord, ...]:
    """Return the records of one autoscaler; raise ValueError if the segment is damaged."""
    try:
        raw = lzma.LZMADecompressor().decompress(compressed, max_length=_MAX_DECODED_BYTES)
        entries = _ENTRIES.decode(raw)
    except (lzma.LZMAError, EOFError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"damaged segment: {error}") from error
    return decoded(entry.record for entry in entries if entry.key == key)


def decoded(records: Iterable[bytes | msgspec.Raw]) -> tuple[DecisionRecord, ...]:
    """Decode records, in the order of time; leave out those that cannot be decoded."""
    found = (decode(record) for record in records)
    return tuple(sorted((one for one in found if one is not None), key=lambda record: record.at))


_ENTRIES: Final = msgspec.msgpack.Decoder(list[StoredEntry])


def key_hash(key: str) -> int:
    """Return a hash of 16 bits, the same in every process."""
    return zlib.crc32(key.encode()) & 0xFFFF


def pack_keys(keys: Iterable[str]) -> str:
    hashes = array("H", sorted({key_hash(key) for key in keys}))
    return b64encode(hashes.tobytes()).decode()


def has_key(packed: str, key: str) -> bool:
    """Return whether packed keys contain the hash of a key."""
    hashes, wanted = array("H"), key_hash(key)
    try:
        hashes.frombytes(b64decode(packed))
    except ValueError:
        return True  # unknown content: the segment must be fetched
    index = bisect_left(hashes, wanted)
    return index < len(hashes) and hashes[index] == wanted


def expired(
    segments: Iterable[SegmentInfo], now: datetime, max_bytes: int, max_age: timedelta
) -> tuple[SegmentInfo, ...]:
    """Return the segments to delete, oldest first: those that are too old, and those beyond ``max_bytes``."""
    found, total = [], 0
    for segment in sorted(segments, key=lambda one: one.until, reverse=True):
        total += segment.size + len(segment.keys) + _METADATA_BYTES
        if total > max_bytes or segment.until < now - max_age:
            found.append(segment)
    return tuple(reversed(found))

"""A list of metric values in Kubernetes' protobuf encoding, which kube-controller-manager prefers.

The five messages are small enough to encode without generated code: a field is its number and wire type, followed by a
varint or by a length and bytes. Kubernetes prepends four magic bytes and an envelope (runtime.Unknown) with the kind.
"""

from collections.abc import Sequence

from adapter.server.serialization import GROUP_VERSION, LIST_KIND, NamedSample, quantity, window

_MAGIC = b"k8s\x00"


def _varint(number: int) -> bytes:
    out = bytearray()
    number &= 0xFFFF_FFFF_FFFF_FFFF  # a negative int64 is encoded as its two's complement
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(field: int, number: int) -> bytes:
    return bytes((field << 3,)) + _varint(number)


def _bytes(field: int, content: bytes) -> bytes:
    return bytes((field << 3 | 2,)) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode("utf-8", "replace"))


_TYPE_META = _bytes(1, _text(1, GROUP_VERSION) + _text(2, LIST_KIND))
_NO_LIST_META = _bytes(1, _text(1, "") + _text(2, "") + _text(3, ""))
_NO_ENCODING = _text(3, "") + _text(4, "")


def encode_list(values: Sequence[NamedSample]) -> bytes:
    """Return the list in its envelope, byte for byte as Kubernetes' own servers encode it."""
    raw = _NO_LIST_META + b"".join(_bytes(2, _value(value)) for value in values)
    return _MAGIC + _TYPE_META + _bytes(2, raw) + _NO_ENCODING


def _value(value: NamedSample) -> bytes:
    sample = value.sample
    seconds = window(sample)
    return b"".join(
        (
            _text(1, value.metric),
            *(_bytes(2, _text(1, key) + _text(2, label)) for key, label in sorted(sample.labels.items())),
            _bytes(3, _number(1, int(sample.at.timestamp())) + _number(2, 0)),
            b"" if seconds is None else _number(4, seconds),
            _bytes(5, _text(1, quantity(sample.milli))),
        )
    )

"""JSON to types: a quantity may be text or a number, null means absent, unknown keys are ignored unless asked about."""

from typing import Final, Self, TypeVar

import msgspec

from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.spec import Spec
from autoscaler.types.status import Status
from autoscaler.values.quantity import Quantity
from autoscaler.wire.decode_error import DecodeError, Fault, in_words, refused, unknown
from autoscaler.wire.document import as_kubernetes_reads_it, unknown_keys

T = TypeVar("T")


def decode_autoscaler(document: object, *, strict: bool = False) -> Autoscaler:
    """Make an autoscaler of a parsed JSON or YAML document; ``strict`` refuses keys that nothing knows."""
    return _decode(document, Autoscaler, strict=strict)


def decode_spec(document: object, *, strict: bool = False) -> Spec:
    """Make a spec of what stands under ``spec``."""
    return _decode(document, Spec, strict=strict)


def decode_status(document: object, *, strict: bool = False) -> Status:
    """Make a status of what stands under ``status``."""
    return _decode(document, Status, strict=strict)


def decode_autoscaler_json(text: bytes | str) -> Autoscaler:
    """Make an autoscaler of JSON text: the way from a watch, where speed counts."""
    try:
        return _AUTOSCALER_DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decode(_parse(text), Autoscaler, strict=False)


class NumberLiteral(float):
    """A JSON number with the text it was, because ``1e3`` and ``1000`` are printed differently as quantities."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> Self:
        """Keep the text."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


def _quantity(_: type, value: object) -> Quantity:
    """Make a quantity of text or a number, the one value here that JSON has no type for."""
    match value:
        case str():
            return Quantity.parse(value.strip())
        case bool():
            pass
        case int():
            return Quantity.parse(str(value))
        case NumberLiteral():
            return Quantity.parse(value.text)
        case float() if value.is_integer() and abs(value) < 1e21:
            return Quantity.parse(str(int(value)))  # where YAML reads 1e3 as a float, the user wrote a whole number
        case float():
            return Quantity.parse(repr(value))
        case _:
            pass
    raise ValueError(f"must be a quantity, is {in_words(value)}")


_AUTOSCALER_DECODER: Final = msgspec.json.Decoder(Autoscaler, dec_hook=_quantity, float_hook=str)
_ANY_DECODER: Final = msgspec.json.Decoder(float_hook=NumberLiteral)


def _parse(text: bytes | str) -> object:
    try:
        return _ANY_DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError((Fault("", f"must be one JSON object: {error}"),)) from error


def _decode(document: object, kind: type[T], *, strict: bool) -> T:
    faults = tuple(unknown(key) for key in unknown_keys(document, kind)) if strict else ()
    try:
        value = _convert(document, kind)
    except msgspec.ValidationError as error:
        raise DecodeError((*faults, refused(str(error), document))) from error
    if faults:
        raise DecodeError(faults)
    return value


def _convert(document: object, kind: type[T]) -> T:
    try:
        return msgspec.convert(document, kind, dec_hook=_quantity)
    except msgspec.ValidationError:
        # Nulls and gaps are rare, so they are only looked for in a document that needs it.
        return msgspec.convert(as_kubernetes_reads_it(document, kind), kind, dec_hook=_quantity)

"""Decodes JSON: a quantity is a string or number, null means absent, unknown keys are ignored unless strict."""

from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.spec import Spec
from autoscaler.types.status import Status
from autoscaler.wire.decode_error import DecodeError, FieldError
from autoscaler.wire.document import unknown_keys, with_zero_values
from autoscaler.wire.quantities import decode_quantity
from autoscaler.wire.undecodable import undecodable_values

T = TypeVar("T")


def decode_autoscaler(document: object, *, strict: bool = False) -> Autoscaler:
    """Decode an autoscaler from a parsed JSON or YAML document; ``strict`` rejects unknown keys."""
    return _decode(document, Autoscaler, strict=strict)


def decode_stored(document: Any) -> Autoscaler:  # noqa: ANN401 - JSON
    """Decode an autoscaler that the API server has stored; discard fields of the status that cannot be decoded.

    A user can correct the spec, but only the controller writes the status, so garbage in it must not stop the
    autoscaler. ``status.controller_state`` is then unreadable, so that the controller reports it and writes a new one.
    """
    try:
        return decode_autoscaler(document)
    except DecodeError:
        autoscaler = decode_autoscaler({**document, "status": None})  # raises if the rest is invalid, too
    readable, errors = {}, []
    for key, value in document["status"].items():
        try:
            decode_status({key: value})
            readable[key] = value
        except DecodeError as error:
            errors.append(str(error))
    status = replace(decode_status(readable), controller_state=f"unreadable status: {'; '.join(errors)}")
    return replace(autoscaler, status=status)


def decode_spec(document: object, *, strict: bool = False) -> Spec:
    return _decode(document, Spec, strict=strict)


def decode_status(document: object, *, strict: bool = False) -> Status:
    return _decode(document, Status, strict=strict)


def _decode(document: object, kind: type[T], *, strict: bool) -> T:
    errors = tuple(unknown_keys(document, kind)) if strict else ()
    try:
        value = _convert(document, kind)
    except msgspec.ValidationError as error:
        wrong = tuple(value.error for value in undecodable_values(document, kind))
        raise DecodeError((*errors, *(wrong or (FieldError("", str(error)),)))) from error
    if errors:
        raise DecodeError(errors)
    return value


def _convert(document: object, kind: type[T]) -> T:
    try:
        return msgspec.convert(document, kind, dec_hook=decode_quantity)
    except msgspec.ValidationError:
        # Nulls and missing keys are rare, so zero values are only filled in after a failure.
        return msgspec.convert(with_zero_values(document, kind), kind, dec_hook=decode_quantity)

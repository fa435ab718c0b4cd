"""Decoding of the JSON bodies of responses. No I/O."""

from typing import Any, TypeVar

import msgspec

from adapter.errors import BackendRejected

T = TypeVar("T")


def decode_body(body: bytes, body_type: type[T], provider: str) -> T:
    """Decode a response; raise ``BackendRejected`` if it is invalid."""
    try:
        return msgspec.json.decode(body, type=body_type)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected(f"invalid response from {provider}", detail=str(error)[:200]) from None


def error_object(body: bytes) -> dict[str, Any]:
    """Return the object ``error`` of an error response; empty if there is none, as in a response of a proxy."""
    try:
        return msgspec.json.decode(body, type=dict[str, dict[str, Any]]).get("error", {})
    except (msgspec.DecodeError, RecursionError):
        return {}

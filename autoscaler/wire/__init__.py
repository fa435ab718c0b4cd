"""Decodes and encodes autoscalers as JSON, with the rules of autoscaling/v2."""

from autoscaler.wire.decode_error import DecodeError, FieldError
from autoscaler.wire.decoding import decode_autoscaler, decode_spec, decode_status, decode_stored
from autoscaler.wire.encoding import encode

__all__ = [
    "DecodeError",
    "FieldError",
    "decode_autoscaler",
    "decode_spec",
    "decode_status",
    "decode_stored",
    "encode",
]

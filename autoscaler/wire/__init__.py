"""JSON to types and back, as autoscaling/v2 is read and printed by Kubernetes itself."""

from autoscaler.wire.decode import decode_autoscaler, decode_autoscaler_json, decode_spec, decode_status
from autoscaler.wire.decode_error import DecodeError, Fault
from autoscaler.wire.encode import encode_spec, encode_status, print_time

__all__ = [
    "DecodeError",
    "Fault",
    "decode_autoscaler",
    "decode_autoscaler_json",
    "decode_spec",
    "decode_status",
    "encode_spec",
    "encode_status",
    "print_time",
]

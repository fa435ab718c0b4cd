"""Decodes quantities, which are strings or numbers in JSON."""

from autoscaler.values.quantity import Quantity
from autoscaler.wire.decode_error import json_type_name


def decode_quantity(_: type, value: object) -> Quantity:
    """Decode a quantity, as ``dec_hook`` of msgspec; raise ValueError if it is none."""
    match value:
        case str():
            return Quantity.parse(value.strip(" "))  # as Go, which trims the JSON text: an escaped tab stays
        case bool():
            pass
        case int():
            return Quantity.parse(str(value))
        case float() if value.is_integer() and abs(value) < 1e21:
            return Quantity.parse(str(int(value)))  # YAML parses 1e3 as a float
        case float():
            return Quantity.parse(repr(value))
        case _:
            pass
    raise ValueError(f"must be a quantity, is {json_type_name(value)}")

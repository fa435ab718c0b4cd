"""Generates a structural schema from a type: fields, types, descriptions and validation rules.

Every field must have a description; a missing one raises a KeyError. Validation rules apply only to the spec, because a
status is written by the controller and must never be rejected.
"""

from typing import Any, Final, TypeAlias

from msgspec import inspect

from autoscaler.types.status import Condition
from autoscaler.values.quantity import Quantity
from autoscaler.wire.document import without_optional
from tools.crd.descriptions import DESCRIPTIONS
from tools.crd.rules import CONSTRAINTS, QUANTITY, REQUIRED, RULES

Schema: TypeAlias = dict[str, Any]

_MAX_INT32: Final = 2**31 - 1


def schema_of(kind: type, *, strict: bool) -> Schema:
    """Return the schema of a struct; ``strict`` includes the validation rules."""
    shape = inspect.type_info(kind)
    if not isinstance(shape, inspect.StructType):
        raise TypeError(f"{kind} is not a msgspec.Struct")
    return _struct(shape, strict=strict)


def _struct(shape: inspect.StructType, *, strict: bool) -> Schema:
    descriptions = DESCRIPTIONS[shape.cls]
    encode_names = {field.name: field.encode_name for field in shape.fields}
    properties: Schema = {}
    for field in shape.fields:
        schema = {"description": descriptions[field.name], **_schema(field.type, strict=strict)}
        extra = CONSTRAINTS.get((shape.cls, field.name), {}) if strict else {}
        properties[field.encode_name] = merge_schemas(schema, extra)
    struct: Schema = {"type": "object", "properties": properties}
    if shape.cls is Condition:
        struct["required"] = ["type", "status"]
    if strict and shape.cls in REQUIRED:
        struct["required"] = [encode_names[name] for name in REQUIRED[shape.cls]]
    if strict and shape.cls in RULES:
        struct["x-kubernetes-validations"] = [dict(rule) for rule in RULES[shape.cls]]
    return struct


def _schema(shape: inspect.Type, *, strict: bool) -> Schema:
    match without_optional(shape):
        case inspect.StructType() as struct:
            return _struct(struct, strict=strict)
        case inspect.VarTupleType(item_type=inner):
            return {"type": "array", "x-kubernetes-list-type": "atomic", "items": _schema(inner, strict=strict)}
        case inspect.DictType(value_type=inner):
            return {"type": "object", "additionalProperties": _schema(inner, strict=strict)}
        case inspect.IntType(le=maximum):
            return {"type": "integer", "format": "int32" if maximum == _MAX_INT32 else "int64"}
        case inspect.StrType():
            return {"type": "string"}
        case inspect.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case inspect.CustomType(cls=cls) if cls is Quantity:
            if strict:
                return dict(QUANTITY)
            return {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
        case other:
            raise TypeError(f"unsupported type: {other}")


def merge_schemas(schema: Schema, extra: Schema) -> Schema:
    """Merge ``extra`` into a schema recursively; a None value removes the key."""
    merged = dict(schema)
    for key, value in extra.items():
        known = merged.get(key)
        merged[key] = merge_schemas(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return {key: value for key, value in merged.items() if value is not None}

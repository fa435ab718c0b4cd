"""A type becomes a structural schema: its fields, their types, what is said of each, and the rules that it must keep.

Every field needs words; one without them fails here, so that none is forgotten. Rules bind the spec alone: a status is
written by the controller, and nothing should keep it from saying what is.
"""

from typing import Any, Final, TypeAlias

from msgspec import inspect

from autoscaler.types.status import Condition
from autoscaler.values.quantity import Quantity
from tools.crd.descriptions import WORDS
from tools.crd.rules import CONSTRAINTS, REQUIRED, RULES

Schema: TypeAlias = dict[str, Any]

_INT32: Final = 2**31 - 1


def schema_of(kind: type, *, strict: bool) -> Schema:
    """Make the schema of a struct; `strict`: with the rules that a user must keep."""
    shape = inspect.type_info(kind)
    if not isinstance(shape, inspect.StructType):
        raise TypeError(f"{kind} is no struct")
    return _struct(shape, strict=strict)


def _struct(shape: inspect.StructType, *, strict: bool) -> Schema:
    words = WORDS[shape.cls]
    properties: Schema = {}
    for field in shape.fields:
        made = {"description": words[field.name], **_schema(field.type, strict=strict)}
        extra = CONSTRAINTS.get((shape.cls, field.name), {}) if strict else {}
        properties[field.encode_name] = overlaid(made, extra)
    made = {"type": "object", "properties": properties}
    if shape.cls is Condition:
        made["required"] = ["type", "status"]
    if strict and shape.cls in REQUIRED:
        made["required"] = list(REQUIRED[shape.cls])
    if strict and shape.cls in RULES:
        made["x-kubernetes-validations"] = [dict(rule) for rule in RULES[shape.cls]]
    return made


def _schema(shape: inspect.Type, *, strict: bool) -> Schema:
    match _substance(shape):
        case inspect.StructType() as struct:
            return _struct(struct, strict=strict)
        case inspect.VarTupleType(item_type=inner):
            return {"type": "array", "x-kubernetes-list-type": "atomic", "items": _schema(inner, strict=strict)}
        case inspect.DictType(value_type=inner):
            return {"type": "object", "additionalProperties": _schema(inner, strict=strict)}
        case inspect.IntType(le=most):
            return {"type": "integer", "format": "int32" if most == _INT32 else "int64"}
        case inspect.StrType():
            return {"type": "string"}
        case inspect.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case inspect.CustomType(cls=cls) if cls is Quantity:
            return {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
        case other:
            raise TypeError(f"no schema is known for {other}")


def overlaid(schema: Schema, extra: Schema) -> Schema:
    """Lay one schema over another, map by map; null takes away."""
    merged = dict(schema)
    for key, value in extra.items():
        known = merged.get(key)
        merged[key] = overlaid(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return {key: value for key, value in merged.items() if value is not None}


def _substance(shape: inspect.Type) -> inspect.Type:
    """Look through an optional, and through what annotates a type, at the type."""
    while isinstance(shape, inspect.UnionType | inspect.Metadata):
        if isinstance(shape, inspect.Metadata):
            shape = shape.type
        else:
            (shape,) = (option for option in shape.types if not isinstance(option, inspect.NoneType))
    return shape

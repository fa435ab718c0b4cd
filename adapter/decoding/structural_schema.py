"""Structural schemas of custom resources as the API server applies them: unknown fields, defaults, validation.

CEL rules are not evaluated; `autoscaler.validation` and `adapter.rules` have the same rules.
"""

import math
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, TypeAlias

from adapter.decoding.problem import Problem
from autoscaler.wire import FieldError
from autoscaler.wire.document import unknown_key_error

Json: TypeAlias = dict[str, Any]

_OBJECT_FIELDS: Final = ("apiVersion", "kind", "metadata")
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
_INT32: Final = 2**31
_INT64: Final = 2**63


def prune_and_default(schema: Json, content: Any, *, root: bool = True) -> None:  # noqa: ANN401 - JSON
    """Remove unknown fields and set defaults, in place."""
    if isinstance(content, list):
        for item in content:
            prune_and_default(schema.get("items") or {}, item, root=False)
    if not isinstance(content, dict):
        return
    properties = schema.get("properties") or {}
    for key in tuple(content):
        known = _is_known(schema, key) or (root and key in _OBJECT_FIELDS)
        if not known or (content[key] is None and not properties.get(key, {}).get("nullable")):
            del content[key]
    for key, inner in properties.items():
        if key not in content and "default" in inner:
            content[key] = inner["default"]
        if key in content and not (root and key in _OBJECT_FIELDS):
            prune_and_default(inner, content[key], root=False)


def unknown_fields(schema: Json, content: Any, path: str = "") -> Iterator[FieldError]:  # noqa: ANN401 - JSON
    """Yield the fields that the schema does not define; those of metadata are left to the caller."""
    if isinstance(content, list):
        for index, item in enumerate(content):
            yield from unknown_fields(schema.get("items") or {}, item, f"{path}[{index}]")
    if not isinstance(content, dict):
        return
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, value in content.items():
        if not path and key in _OBJECT_FIELDS:
            continue
        if _is_known(schema, key):
            yield from unknown_fields(properties.get(key, more) or {}, value, _join(path, key))
        else:
            yield unknown_key_error(path, str(key), tuple(properties))


def problems(schema: Json, content: Any, path: str = "") -> Iterator[Problem]:  # noqa: ANN401 - JSON
    """Yield every problem of a document."""
    if content is None and schema.get("nullable"):
        return
    if not _has_type(schema, content):
        found = {dict: "object", list: "array", type(None): "null"}.get(type(content), type(content).__name__)
        yield Problem(path, f'Invalid value: "{found}": must be of type {schema["type"]}')
        return
    yield from _enum_problems(schema, content, path)
    yield from _alternative_problems(schema, content, path)
    match content:
        case dict():
            yield from _object_problems(schema, content, path)
        case list():
            yield from _list_problems(schema, content, path)
        case str():
            yield from _string_problems(schema, content, path)
        case int() | float() if not isinstance(content, bool):
            yield from _number_problems(schema, content, path)
        case _:
            pass


def _is_known(schema: Json, key: str) -> bool:
    return (
        key in (schema.get("properties") or {})
        or "additionalProperties" in schema
        or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    )


def _has_type(schema: Json, content: Any) -> bool:  # noqa: ANN401 - JSON
    expected = schema.get("type")
    if not expected:
        return True
    if isinstance(content, bool):
        return bool(expected == "boolean")
    return isinstance(content, _TYPES[expected])


def _enum_problems(schema: Json, content: Any, path: str) -> Iterator[Problem]:  # noqa: ANN401 - JSON
    if "enum" in schema and not any(value == content and type(value) is type(content) for value in schema["enum"]):
        supported = ", ".join(f'"{value}"' for value in schema["enum"])
        yield Problem(path, f'Unsupported value: "{content}": supported values: {supported}')


def _alternative_problems(schema: Json, content: Any, path: str) -> Iterator[Problem]:  # noqa: ANN401 - JSON
    valid = {kind: sum(_is_valid(option, content) for option in schema.get(kind) or ()) for kind in ("anyOf", "oneOf")}
    if "anyOf" in schema and not valid["anyOf"]:
        yield Problem(path, f"Invalid value: must have at least one of {_alternatives(schema['anyOf'])}")
    if "oneOf" in schema and valid["oneOf"] != 1:
        yield Problem(path, f"Invalid value: must have exactly one of {_alternatives(schema['oneOf'])}")
    if "not" in schema and _is_valid(schema["not"], content):
        yield Problem(path, "Invalid value: has a type that is not allowed")


def _alternatives(options: list[Json]) -> str:
    names = [name for option in options for name in option.get("required") or ()]
    return ", ".join(names) if names else f"{len(options)} alternatives"


def _is_valid(schema: Json, content: Any) -> bool:  # noqa: ANN401 - JSON
    return not any(problems(schema, content))


def _object_problems(schema: Json, content: Json, path: str) -> Iterator[Problem]:
    for key in schema.get("required") or ():
        if key not in content:
            yield Problem(_join(path, key), "Required value")
    if not schema.get("minProperties", 0) <= len(content) <= schema.get("maxProperties", len(content)):
        yield Problem(path, f"Invalid value: {len(content)} properties: {_range(schema, 'Properties')} are allowed")
    properties = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    for key, value in content.items():
        inner = properties.get(key, more)
        if isinstance(inner, dict) and not (not path and key in _OBJECT_FIELDS):
            yield from problems(inner, value, _join(path, key))


def _list_problems(schema: Json, content: list[Any], path: str) -> Iterator[Problem]:
    if not schema.get("minItems", 0) <= len(content) <= schema.get("maxItems", len(content)):
        yield Problem(path, f"Invalid value: {len(content)} items: {_range(schema, 'Items')} are allowed")
    for index, item in enumerate(content):
        yield from problems(schema.get("items") or {}, item, f"{path}[{index}]")
        if schema.get("x-kubernetes-list-type") == "set" and item in content[:index]:
            yield Problem(f"{path}[{index}]", f'Duplicate value: "{item}"')


def _string_problems(schema: Json, content: str, path: str) -> Iterator[Problem]:
    if len(content) < schema.get("minLength", 0):
        yield Problem(path, f'Invalid value: "{content}": must have at least {schema["minLength"]} characters')
    if len(content) > schema.get("maxLength", len(content)):
        yield Problem(path, f"Too long: must have at most {schema['maxLength']} characters")
    elif "pattern" in schema and not re.search(_python_pattern(schema["pattern"]), content):
        yield Problem(path, f'Invalid value: "{content}": must match {schema["pattern"]}')
    if schema.get("format") == "date-time" and not _is_time(content):
        yield Problem(path, f'Invalid value: "{content}": must be a time such as 2000-01-01T02:00:00Z')


def _python_pattern(pattern: str) -> str:
    r"""Return a pattern of Go in Python's notation, where ``$`` also matches before a final line break."""
    return rf"{pattern[:-1]}\Z" if pattern.endswith("$") else pattern


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _number_problems(schema: Json, content: float, path: str) -> Iterator[Problem]:
    minimum, maximum = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if content < minimum or (content == minimum and schema.get("exclusiveMinimum")):
        relation = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield Problem(path, f"Invalid value: {content}: must be {relation} {minimum}")
    if content > maximum:
        yield Problem(path, f"Invalid value: {content}: must be less than or equal to {maximum}")
    limit = {"int32": _INT32, "int64": _INT64}.get(schema.get("format", ""))
    if limit is not None and not -limit <= content < limit:
        yield Problem(path, f"Invalid value: {content}: must be of type {schema['format']}")


def _range(schema: Json, suffix: str) -> str:
    minimum, maximum = schema.get(f"min{suffix}", 0), schema.get(f"max{suffix}")
    return f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else str(key)

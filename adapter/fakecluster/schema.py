"""Structural schemas of custom resources: pruning of unknown fields, defaulting, validation.

CEL validation rules are ignored.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from adapter.fakecluster.kinds import Json

_OBJECT_FIELDS: Final = ("apiVersion", "kind", "metadata")
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def prune_and_default(schema: Json, content: Any, *, root: bool = True) -> None:  # noqa: ANN401 - JSON
    """Remove unknown fields and set defaults, in place."""
    if isinstance(content, list):
        for item in content:
            prune_and_default(schema.get("items") or {}, item, root=False)
    if not isinstance(content, dict):
        return
    properties = schema.get("properties") or {}
    accepts_any = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    for key in tuple(content):
        known = key in properties or (root and key in _OBJECT_FIELDS) or accepts_any
        if not known or (content[key] is None and not properties.get(key, {}).get("nullable")):
            del content[key]
    for key, inner in properties.items():
        if key not in content and "default" in inner:
            content[key] = inner["default"]
        if key in content and not (root and key in _OBJECT_FIELDS):
            prune_and_default(inner, content[key], root=False)


def problems(schema: Json, content: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    if content is None and schema.get("nullable"):
        return
    yield from _type_problems(schema, content, path)
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


def _type_problems(schema: Json, content: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - JSON
    expected = schema.get("type")
    if expected and not isinstance(content, _TYPES[expected]):
        yield f'{path}: Invalid value: "{type(content).__name__}": {path} in body must be of type {expected}'
    if "enum" in schema and not any(value == content and type(value) is type(content) for value in schema["enum"]):
        supported = ", ".join(f'"{value}"' for value in schema["enum"])
        yield f'{path}: Unsupported value: "{content}": supported values: {supported}'


def _alternative_problems(schema: Json, content: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - JSON
    prefix = f'{path}: Invalid value: "": "{path}" must'
    valid = {kind: sum(_is_valid(option, content) for option in schema.get(kind) or ()) for kind in ("anyOf", "oneOf")}
    if "anyOf" in schema and not valid["anyOf"]:
        yield f"{prefix} validate at least one schema (anyOf)"
    if "oneOf" in schema and valid["oneOf"] != 1:
        yield f"{prefix} validate one and only one schema (oneOf)"
    if "not" in schema and _is_valid(schema["not"], content):
        yield f"{prefix} not validate the schema (not)"


def _is_valid(schema: Json, content: Any) -> bool:  # noqa: ANN401 - JSON
    return not any(problems(schema, content))


def _object_problems(schema: Json, content: Json, path: str) -> Iterator[str]:
    for key in schema.get("required") or ():
        if key not in content:
            yield f"{_join(path, key)}: Required value"
    if not schema.get("minProperties", 0) <= len(content) <= schema.get("maxProperties", len(content)):
        yield f"{path}: Invalid value: {len(content)}: {path} in body has a wrong number of properties"
    properties = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    for key, value in content.items():
        inner = properties.get(key, more)
        if isinstance(inner, dict) and not (not path and key in _OBJECT_FIELDS):
            yield from problems(inner, value, _join(path, key))


def _list_problems(schema: Json, content: list[Any], path: str) -> Iterator[str]:
    if len(content) < schema.get("minItems", 0):
        yield f"{path}: Invalid value: {len(content)}: {path} in body should have at least {schema['minItems']} items"
    if len(content) > schema.get("maxItems", len(content)):
        yield f"{path}: Too many: {len(content)}: must have at most {schema['maxItems']} items"
    for index, item in enumerate(content):
        yield from problems(schema.get("items") or {}, item, f"{path}[{index}]")


def _string_problems(schema: Json, content: str, path: str) -> Iterator[str]:
    if len(content) < schema.get("minLength", 0):
        yield f'{path}: Invalid value: "{content}": should be at least {schema["minLength"]} chars long'
    if len(content) > schema.get("maxLength", len(content)):
        yield f"{path}: Too long: may not be more than {schema['maxLength']} bytes"
    if "pattern" in schema and not re.search(schema["pattern"], content):
        yield f"{path}: Invalid value: \"{content}\": {path} in body should match '{schema['pattern']}'"


def _number_problems(schema: Json, content: float, path: str) -> Iterator[str]:
    prefix = f"{path}: Invalid value: {content}: {path} in body should be"
    minimum = schema.get("minimum", content)
    if content < minimum or (content == minimum and schema.get("exclusiveMinimum")):
        yield f"{prefix} greater than {'' if schema.get('exclusiveMinimum') else 'or equal to '}{minimum}"
    if content > schema.get("maximum", content):
        yield f"{prefix} less than or equal to {schema['maximum']}"


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key

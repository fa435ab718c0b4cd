"""Decodes the objects of lists and watch events one by one, so that an invalid object affects no other.

`KubeClient` returns other responses as JSON objects. Lists and watch lines contain objects that tenants write, and a
single one can make a decoder fail, for example by nesting that exceeds the recursion limit. The items of a list are
therefore decoded one by one, which also limits memory: a decoded object takes up to twenty times the size of its JSON.
If a document cannot even be split by the decoder, it is split without recursion.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from autoscaler.kube.client import Json
from autoscaler.kube.errors import MalformedResponse
from autoscaler.kube.invalid_objects import InvalidObject

T = TypeVar("T")

_MAX_REASON_LENGTH: Final = 256
_MAX_VERSION_DIGITS: Final = 20
"""A resourceVersion is an unsigned 64-bit integer."""

_STRING: Final = rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)(?:"|\\?\Z)'
_FLAT: Final = rb'[\[{](?>(?:[^"\[\]{}]++|' + _STRING + rb")*)[\]}]"
"""An array or object that contains no other. Skipping it in the expression is ten times as fast as two matches."""

_BRACKET: Final = re.compile(rb'(?>(?:[^"\[\]{}]++|' + _STRING + rb"|" + _FLAT + rb")*)[\[\]{}]", re.DOTALL)
_FIELD: Final = re.compile(rb'\s*"([^"\\]*+)"\s*:')
_DELIMITER: Final = re.compile(rb'(?>(?:[^"\[\]{},]++|' + _STRING + rb")*)[\[\]{},]", re.DOTALL)

Document: TypeAlias = bytes | msgspec.Raw
"""JSON that is not decoded yet."""


@dataclass(frozen=True, slots=True)
class ObjectList:
    """All objects of the collection; an object that is not in the list does not exist."""

    objects: tuple[Any, ...]
    """JSON objects, or what the ``reduce`` function of the consumer has returned for them."""

    resource_version: str = ""
    invalid: tuple[InvalidObject, ...] = ()


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """One page of a list, and the token of the next page."""

    items: Iterable[Document]
    """Not decoded, see `check_object`."""

    resource_version: str
    continue_token: str


class _Page(msgspec.Struct):
    items: list[msgspec.Raw] | None
    metadata: Json


def decode_page(body: bytes) -> ObjectPage:
    """Decode a page of a list; raise MalformedResponse if it is not a list."""
    return decode_response("list", _decode_page, body)


def check_object(item: object) -> Json | InvalidObject:
    """Return an object without managedFields, or why it is invalid; a document is decoded."""
    content = item
    if isinstance(item, Document):
        try:
            content = decode_response("object", msgspec.json.decode, item)
        except MalformedResponse as error:
            return _undecodable(bytes(item), error)
    if not isinstance(content, dict) or not isinstance(content.get("metadata"), dict):
        return InvalidObject("", "the object has no metadata")
    metadata = content["metadata"]
    for field in ("name", "resourceVersion"):
        if not isinstance(metadata.get(field), str) or not metadata[field]:
            return InvalidObject(_key(metadata), f"metadata.{field} must be a non-empty string")
    for field in ("namespace", "uid"):
        if not isinstance(metadata.get(field, ""), str):
            return InvalidObject(_key(metadata), f"metadata.{field} must be a string", metadata["resourceVersion"])
    metadata.pop("managedFields", None)  # half of the size of an object, and unused
    return content


def decode_response(name: str, decode: Callable[..., T], *arguments: object) -> T:
    """Decode a part of a response; raise MalformedResponse if ``decode`` fails, whatever the response contains."""
    try:
        return decode(*arguments)
    except Exception as error:
        raise MalformedResponse(f"malformed {name}: {repr(error)[:_MAX_REASON_LENGTH]}") from error


def key_of(content: Json) -> str:
    """Return the key of a checked object: ``namespace/name``, or the name of a cluster-scoped object."""
    metadata = content["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def resource_version_of(content: Json) -> str:
    return str(content["metadata"]["resourceVersion"])


def uid_of(content: Json) -> str:
    return str(content["metadata"].get("uid", ""))


def is_older(resource_version: str, known: str) -> bool:
    """Compare resourceVersions of one kind, which Kubernetes guarantees to be increasing integers."""
    return _is_number(resource_version) and _is_number(known) and int(resource_version) < int(known)


def split(document: bytes, position: int = 0) -> Iterator[bytes]:
    """Yield the items of the JSON array, or the members of the JSON object, at a position, without decoding them."""
    position = _start(document, position)
    while position < len(document):
        end = _end(document, position)
        if part := document[position:end].strip():
            yield part
        if document[end : end + 1] != b",":
            return
        position = end + 1


def member(document: bytes, name: str) -> bytes:
    """Return the undecoded value of a field of a JSON object; empty if there is none."""
    position = member_position(document, name)
    return document[position : _end(document, position)].strip()


def member_position(document: bytes, name: str) -> int:
    """Return where the value of a field of a JSON object starts; the end of the document if there is none."""
    position = _start(document, 0)
    while position < len(document):
        match = _FIELD.match(document, position)
        if match is not None and match[1] == name.encode():
            return match.end()
        end = _end(document, position)
        position = end + 1 if document[end : end + 1] == b"," else len(document)
    return position


def _start(document: bytes, position: int) -> int:
    match = _DELIMITER.match(document, position)
    return match.end() if match is not None and document[match.end() - 1] in b"[{" else len(document)


def _end(document: bytes, position: int) -> int:
    """Return the position of the comma or bracket after a value."""
    depth, pattern = 0, _DELIMITER
    while match := pattern.match(document, position):
        position = match.end()
        character = document[position - 1]
        if character in b"[{":
            depth += 1
        elif depth == 0:
            return position - 1
        else:
            depth -= 1
        pattern = _BRACKET if depth else _DELIMITER
    return len(document)


def _decode_page(body: bytes) -> ObjectPage:
    items: Iterable[Document]
    try:
        page = msgspec.json.decode(body, type=_Page)
        items, metadata = page.items or (), page.metadata
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        position = member_position(body, "items")
        if body[position:].lstrip()[:1] != b"[":
            raise
        items, metadata = split(body, position), msgspec.json.decode(member(body, "metadata"))
    if not isinstance(metadata["resourceVersion"], str):
        raise TypeError("metadata.resourceVersion must be a string")
    return ObjectPage(items, metadata["resourceVersion"], str(metadata.get("continue") or ""))


def _undecodable(document: bytes, error: MalformedResponse) -> InvalidObject:
    try:
        metadata = decode_response("metadata", msgspec.json.decode, member(document, "metadata"))
        version = decode_response("metadata.resourceVersion", str, metadata["resourceVersion"])
        return InvalidObject(_key(metadata), str(error), version)
    except (MalformedResponse, KeyError, TypeError):  # not even the name of the object can be decoded
        return InvalidObject("", str(error))


def _key(metadata: Json) -> str:
    name, namespace = metadata.get("name"), metadata.get("namespace") or ""
    if not isinstance(name, str) or not isinstance(namespace, str) or not name:
        return ""
    return f"{namespace}/{name}" if namespace else name


def _is_number(resource_version: str) -> bool:
    is_short = len(resource_version) <= _MAX_VERSION_DIGITS
    return is_short and resource_version.isascii() and resource_version.isdigit()

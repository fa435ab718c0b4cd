"""Decodes the objects of lists and watch events one by one, so that an invalid object affects no other.

`KubeClient` returns other responses as JSON objects. Lists and watch lines contain objects that tenants write, and a
single one can make a decoder fail, for example by nesting that exceeds the recursion limit. If a whole document cannot
be decoded, it is split without recursion and its parts are decoded separately.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from autoscaler.kube.client import Json
from autoscaler.kube.errors import MalformedResponse
from autoscaler.kube.invalid_objects import InvalidObject

T = TypeVar("T")

_MAX_REASON_LENGTH: Final = 256
_MAX_VERSION_DIGITS: Final = 20
"""A resourceVersion is an unsigned 64-bit integer."""

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class ObjectList:
    """All objects of the collection; an object that is not in the list does not exist."""

    objects: tuple[Json, ...]
    resource_version: str = ""
    invalid: tuple[InvalidObject, ...] = ()


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """One page of a list, and the token of the next page."""

    objects: list[Json]
    invalid: list[InvalidObject]
    resource_version: str
    continue_token: str


def decode_page(body: bytes) -> ObjectPage:
    """Decode a page of a list; raise MalformedResponse if it is not a list."""
    items, metadata = decode_response("list", _items_and_metadata, body)
    page = ObjectPage([], [], str(metadata["resourceVersion"]), str(metadata.get("continue") or ""))
    for item in items:
        checked = check_object(item)
        if isinstance(checked, InvalidObject):
            page.invalid.append(checked)
        else:
            page.objects.append(checked)
    return page


def check_object(item: object) -> Json | InvalidObject:
    """Return an object without managedFields, or why it is invalid; bytes are decoded."""
    content = item
    if isinstance(item, bytes):
        try:
            content = decode_response("object", msgspec.json.decode, item)
        except MalformedResponse as error:
            return _undecodable(item, error)
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


def split(document: bytes) -> Iterator[bytes]:
    """Yield the members of a JSON object or the items of a JSON array, without decoding or recursion."""
    depth, start = 0, 0
    for token in _TOKEN.finditer(document):
        character = token[0][:1]
        if character in b"[{":
            depth += 1
            start = token.end() if depth == 1 else start
        elif character == b"," and depth == 1:
            yield document[start : token.start()].strip()
            start = token.end()
        elif character in b"]}":
            depth -= 1
            if depth == 0:
                if last := document[start : token.start()].strip():
                    yield last
                return


def member(document: bytes, name: str) -> bytes:
    """Return the undecoded value of a field of a JSON object; empty if there is none."""
    prefix = f'"{name}"'.encode()
    for part in split(document):
        if part.startswith(prefix):
            return part.removeprefix(prefix).lstrip().removeprefix(b":").strip()
    return b""


def _items_and_metadata(body: bytes) -> tuple[list[object], Json]:
    try:
        content = decode_response("list", msgspec.json.decode, body)
        items, metadata = content["items"], content["metadata"]
    except MalformedResponse:
        items, metadata = list(split(member(body, "items"))), msgspec.json.decode(member(body, "metadata"))
    if not isinstance(items, list | None) or not isinstance(metadata.get("resourceVersion"), str):
        raise TypeError("a list has items and metadata.resourceVersion")
    return items or [], metadata


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

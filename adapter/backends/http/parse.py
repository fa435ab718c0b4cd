"""Extraction of samples from JSON, XML and text documents. Pure code. The documents are untrusted input."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import msgspec

from adapter.backends.http.json_query import compile_expression, search
from adapter.backends.http.settings import HttpParameters
from adapter.backends.http.text_pattern import compile_pattern, matches
from adapter.backends.http.xml_path import XmlPath
from adapter.decoding.problem import Problem
from adapter.errors import BackendRejected, BadQuery
from adapter.sample import RawSample

MAX_SERIES: Final = 10_000
_MAX_XML_DEPTH: Final = 200


def samples(body: bytes, wanted: HttpParameters, now: datetime) -> tuple[RawSample, ...]:
    """Return the samples in a document; raise ``BackendRejected`` if it has another format."""
    try:
        found = tuple(islice(_PARSERS[wanted.format](body, wanted.value, now), MAX_SERIES + 1))
    except RecursionError:
        raise BackendRejected("the document is nested too deeply") from None
    if len(found) > MAX_SERIES:
        raise BackendRejected(f"the document has more than {MAX_SERIES} series")
    return found


def expression_problems(wanted: HttpParameters, path: str) -> Iterator[Problem]:
    try:
        match wanted.format:
            case "json":
                compile_expression(wanted.value or "@")
            case "xml":
                XmlPath(wanted.value)
            case "text":
                compile_pattern(wanted.value)
    except ValueError as error:
        yield Problem(f"{path}.value", f"invalid expression: {error}")


def _parse_json(body: bytes, expression: str, now: datetime) -> Iterator[RawSample]:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected("the response is not valid JSON", detail=str(error)[:200]) from None
    result = search(expression, document) if expression else document
    if isinstance(result, list):
        for item in result:
            yield _sample(item, now)
    elif result is not None:
        yield RawSample(_number(result), now)


def _sample(item: Any, now: datetime) -> RawSample:  # noqa: ANN401 - untrusted input
    if not isinstance(item, Mapping):
        return RawSample(_number(item), now)
    if unknown := item.keys() - {"labels", "value", "timestamp"}:
        detail = f"unknown: {', '.join(sorted(unknown))[:100]}"
        raise BadQuery("a series can only have the keys labels, value and timestamp", detail=detail)
    labels = item.get("labels") or {}
    if not isinstance(labels, Mapping):
        raise BadQuery("the labels of a series must be an object")
    timestamp = item.get("timestamp")
    return RawSample(
        _number(item.get("value")),
        now if timestamp is None else _time(timestamp),
        {
            key: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for key, value in labels.items()
        },
    )


def _parse_xml(body: bytes, expression: str, now: datetime) -> Iterator[RawSample]:
    path = XmlPath(expression)
    for element in path.find(_parse_tree(body)):
        text = element.get(path.attribute) if path.attribute else element.text
        if text is not None:
            labels = {key: value for key, value in element.items() if key != path.attribute}
            yield RawSample(_number(text), now, labels)


def _parse_tree(body: bytes) -> Element:
    """Parse XML; reject document type and entity declarations, which allow denial-of-service attacks."""
    builder, parser = TreeBuilder(), expat.ParserCreate()
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_XML_DEPTH:
            raise BackendRejected(f"the XML document is nested deeper than {_MAX_XML_DEPTH} levels")
        builder.start(_local_name(tag), attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(_local_name(tag))

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = _reject_declaration
    parser.EntityDeclHandler = _reject_declaration
    try:
        parser.Parse(body, True)  # noqa: FBT003 - expat's signature
        return builder.close()
    except (expat.ExpatError, AssertionError) as error:
        raise BackendRejected("the response is not valid XML", detail=str(error)[:200]) from None


def _local_name(tag: str) -> str:
    return tag.rpartition(":")[2]


def _reject_declaration(*_: object) -> None:
    raise BackendRejected("XML with a document type declaration is not supported")


def _parse_text(body: bytes, expression: str, now: datetime) -> Iterator[RawSample]:
    text = body.decode("utf-8", "replace")
    if not expression:
        yield RawSample(_number(text), now)
        return
    for groups in matches(expression, text):
        yield RawSample(_number(groups.pop("value")), now, groups)


def _number(value: Any) -> float:  # noqa: ANN401 - untrusted input
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BackendRejected("the value is not a number", detail=type(value).__name__)
    try:
        return float(value)
    except (ValueError, OverflowError) as error:
        raise BackendRejected("the value is not a number", detail=str(error)[:200]) from None


def _time(value: Any) -> datetime:  # noqa: ANN401 - untrusted input
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(float(value), UTC)
    except (ValueError, OverflowError, OSError, TypeError) as error:
        raise BackendRejected("the timestamp is not a time", detail=str(error)[:200]) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


_PARSERS: Final[Mapping[str, Callable[[bytes, str, datetime], Iterator[RawSample]]]] = {
    "json": _parse_json,
    "xml": _parse_xml,
    "text": _parse_text,
}

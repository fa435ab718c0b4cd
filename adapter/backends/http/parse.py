"""Extraction of samples from JSON, XML and text documents. Pure code. The documents are untrusted input."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import jmespath
import msgspec
import regex

from adapter.backends.http.settings import HttpParameters
from adapter.decoding.problem import Problem
from adapter.errors import BackendRejected, BadQuery
from adapter.sample import RawSample

_REGEX_TIMEOUT: Final = 0.5
"""Seconds; some regular expressions take exponential time."""

_compile_regex = lru_cache(maxsize=1024)(regex.compile)
_compile_jmespath = lru_cache(maxsize=1024)(jmespath.compile)


def samples(body: bytes, wanted: HttpParameters, now: datetime) -> tuple[RawSample, ...]:
    """Return the samples in a document; raise ``BackendRejected`` if it has another format."""
    return tuple(_PARSERS[wanted.format](body, wanted.value, now))


def expression_problems(wanted: HttpParameters, path: str) -> Iterator[Problem]:
    try:
        match wanted.format:
            case "json":
                _compile_jmespath(wanted.value or "@")
            case "xml":
                Element("x").findall(wanted.value.partition("/@")[0] or ".")
            case "text":
                _compile_regex(wanted.value)
    except (jmespath.exceptions.JMESPathError, SyntaxError, KeyError, RecursionError, regex.error) as error:
        yield Problem(f"{path}.value", f"invalid expression: {str(error).splitlines()[0]}")


def _parse_json(body: bytes, expression: str, now: datetime) -> Iterator[RawSample]:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected("the response is not valid JSON", detail=str(error)[:200]) from None
    try:
        result = _compile_jmespath(expression).search(document) if expression else document
    except jmespath.exceptions.JMESPathError as error:
        raise BadQuery("the JMESPath expression failed on the document", detail=str(error)[:200]) from None
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


def _parse_xml(body: bytes, path: str, now: datetime) -> Iterator[RawSample]:
    elements, _, attribute = path.rpartition("/@") if "/@" in path else (path, "", "")
    root = _parse_tree(body)
    try:
        matches = root.findall(elements or ".")
    except SyntaxError as error:
        raise BadQuery("invalid XML path", detail=str(error)[:200]) from None
    for element in matches:
        text = element.get(attribute) if attribute else element.text
        if text is not None:
            yield RawSample(_number(text), now, {key: value for key, value in element.items() if key != attribute})


def _parse_tree(body: bytes) -> Element:
    """Parse XML; reject document type and entity declarations, which allow denial-of-service attacks."""
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda tag, attributes: builder.start(_local_name(tag), attributes)
    parser.EndElementHandler = lambda tag: builder.end(_local_name(tag))
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
    try:
        for match in _compile_regex(expression).finditer(text, timeout=_REGEX_TIMEOUT, concurrent=True):
            named = {key: value for key, value in match.groupdict().items() if value is not None}
            first = match[1] if match.re.groups else match[0]
            yield RawSample(_number(named.pop("value", first)), now, named)
    except TimeoutError:
        raise BadQuery(f"the regular expression takes longer than {_REGEX_TIMEOUT}s") from None


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

"""From a document to numbers; pure. What is in it is anyone's, so nothing in it is trusted."""

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
from adapter.errors import BackendRejected, BadQuery
from adapter.sample import RawSample

_PATIENCE: Final = 0.5
"""Seconds that an expression may search a text: there are some that never end."""

_compiled = lru_cache(maxsize=1024)(regex.compile)
_searched = lru_cache(maxsize=1024)(jmespath.compile)


def samples(body: bytes, asked: HttpParameters, now: datetime) -> tuple[RawSample, ...]:
    """Find the numbers in a document; raise ``BackendRejected`` if it is none of that format."""
    return tuple(_FORMATS[asked.format](body, asked.value, now))


def _of_json(body: bytes, expression: str, now: datetime) -> Iterator[RawSample]:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BackendRejected("it answers, but not with JSON", detail=str(error)[:200]) from None
    try:
        found = _searched(expression).search(document) if expression else document
    except jmespath.exceptions.JMESPathError as error:
        raise BadQuery("the expression does not fit the document", detail=str(error)[:200]) from None
    if isinstance(found, list):
        for each in found:
            yield _series(each, now)
    elif found is not None:
        yield RawSample(_number(found), now)


def _series(found: Any, now: datetime) -> RawSample:  # noqa: ANN401 - whatever the server wrote
    if not isinstance(found, Mapping):
        return RawSample(_number(found), now)
    if unknown := found.keys() - {"labels", "value", "at"}:
        raise BadQuery("a series may have labels, value and at", detail=f"found {', '.join(sorted(unknown))[:100]}")
    labels = found.get("labels") or {}
    if not isinstance(labels, Mapping):
        raise BadQuery("labels must be names with values")
    return RawSample(
        _number(found.get("value")),
        now if found.get("at") is None else _time(found["at"]),
        {
            key: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for key, value in labels.items()
        },
    )


def _of_xml(body: bytes, path: str, now: datetime) -> Iterator[RawSample]:
    elements, _, attribute = path.rpartition("/@") if "/@" in path else (path, "", "")
    root = _tree(body)
    try:
        found = root.findall(elements or ".")
    except SyntaxError as error:
        raise BadQuery("the path cannot be understood", detail=str(error)[:200]) from None
    for each in found:
        text = each.get(attribute) if attribute else each.text
        if text is not None:
            yield RawSample(_number(text), now, {key: value for key, value in each.items() if key != attribute})


def _tree(body: bytes) -> Element:
    """Read XML without what makes it dangerous: a document that declares anything is refused."""
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda tag, attributes: builder.start(_bare(tag), attributes)
    parser.EndElementHandler = lambda tag: builder.end(_bare(tag))
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(body, True)  # noqa: FBT003 - expat's own word for "that is all"
        return builder.close()
    except (expat.ExpatError, AssertionError) as error:
        raise BackendRejected("it answers, but not with XML", detail=str(error)[:200]) from None


def _bare(tag: str) -> str:
    return tag.rpartition(":")[2]


def _refuse(*_: object) -> None:
    raise BackendRejected("it answers with XML that declares a document type")


def _of_text(body: bytes, expression: str, now: datetime) -> Iterator[RawSample]:
    text = body.decode("utf-8", "replace")
    if not expression:
        yield RawSample(_number(text), now)
        return
    try:
        for match in _compiled(expression).finditer(text, timeout=_PATIENCE, concurrent=True):
            named = {key: value for key, value in match.groupdict().items() if value is not None}
            first = match[1] if match.re.groups else match[0]
            yield RawSample(_number(named.pop("value", first)), now, named)
    except TimeoutError:
        raise BadQuery("the expression takes too long") from None


def _number(found: Any) -> float:  # noqa: ANN401 - whatever the server wrote
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        raise BackendRejected("what it answers is no number", detail=type(found).__name__)
    try:
        return float(found)
    except (ValueError, OverflowError) as error:
        raise BackendRejected("what it answers is no number", detail=str(error)[:200]) from None


def _time(found: Any) -> datetime:  # noqa: ANN401 - whatever the server wrote
    try:
        at = datetime.fromisoformat(found) if isinstance(found, str) else datetime.fromtimestamp(float(found), UTC)
    except (ValueError, OverflowError, OSError, TypeError) as error:
        raise BackendRejected("what it answers is no time", detail=str(error)[:200]) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def expression_problems(asked: HttpParameters, at: str) -> Iterator[str]:
    """Say what is wrong with an expression, if it cannot be used."""
    try:
        match asked.format:
            case "json":
                _searched(asked.value or "@")
            case "xml":
                Element("x").findall(asked.value.partition("/@")[0] or ".")
            case "text":
                _compiled(asked.value)
    except (jmespath.exceptions.JMESPathError, SyntaxError, KeyError, RecursionError, regex.error) as error:
        yield f"{at}.value: cannot be understood: {str(error).splitlines()[0]}"


_FORMATS: Final[Mapping[str, Callable[[bytes, str, datetime], Iterator[RawSample]]]] = {
    "json": _of_json,
    "xml": _of_xml,
    "text": _of_text,
}

"""Runs selector.json: selectors as text and as objects, what they print and which labels they match."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec import convert

from autoscaler.conformance.result import Case, Difference, Document, compare
from autoscaler.values.selector import (
    LabelSelector,
    Selector,
    SelectorError,
    format_label_selector,
    from_label_selector,
    go_syntax,
    parse,
)


def sections(document: Document) -> tuple[str, ...]:
    """Name the sections of a selector document that are present; none in any other document."""
    return tuple(name for name in ("strings", "objects") if name in document and "labelSets" in document)


def cases(document: Document) -> Iterator[Case]:
    """Give every case: all that upstream answered must be what we answer, and nothing more."""
    answers = {"strings": ("s", _text_answer), "objects": ("selector", _object_answer)}
    for section in sections(document):
        key, answer = answers[section]
        for case in document[section]:
            yield Case(f"{section} {case[key]!r}", partial(_differences, case, key, answer, document["labelSets"]))


def _differences(
    case: Mapping[str, Any], key: str, answer: Callable[..., dict[str, Any]], label_sets: list[dict[str, str]]
) -> Iterator[Difference]:
    got = answer(case[key], label_sets)
    yield from compare("", _expected(case, key, got), got)


def _expected(case: Mapping[str, Any], given: str, got: Mapping[str, Any]) -> dict[str, Any]:
    """Take upstream's answer; where it picks one of several errors at random, any of them will do."""
    expected = {key: value for key, value in case.items() if key not in {given, "errorAlternatives"}}
    if got.get("error") in case.get("errorAlternatives", ()):
        expected["error"] = got["error"]
    return expected


def _text_answer(text: str, label_sets: list[dict[str, str]]) -> dict[str, Any]:
    return _answer(lambda: parse(text), label_sets)


def _object_answer(written: object, label_sets: list[dict[str, str]]) -> dict[str, Any]:
    selector = convert(written, LabelSelector | None)
    answer = _answer(lambda: from_label_selector(selector), label_sets)
    if answer["ok"]:
        answer["selectable"] = from_label_selector(selector).selectable
    return answer | {"formatLabelSelector": format_label_selector(selector), "plusV": go_syntax(selector)}


def _answer(make: Callable[[], Selector], label_sets: list[dict[str, str]]) -> dict[str, Any]:
    try:
        selector = make()
    except SelectorError as error:
        return {"ok": False, "error": str(error), "matches": []}
    return {
        "ok": True,
        "requirements": [
            {"key": one.key, "operator": one.operator, "values": sorted(set(one.values))}
            for one in selector.requirements
        ]
        or None,
        "string": str(selector),
        "empty": selector.is_empty,
        "matches": [index for index, labels in enumerate(label_sets) if selector.matches(labels)],
    }

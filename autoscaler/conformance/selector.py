"""Run selector.json: parsing and formatting of selectors as text and as objects, and the labels that they match."""

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
    """Return the sections of a selector file, or nothing for other files."""
    return tuple(name for name in ("strings", "objects") if name in document and "labelSets" in document)


def cases(document: Document) -> Iterator[Case]:
    """Yield every case; all fields of upstream's result are compared, and no others are allowed."""
    functions = {"strings": ("s", _from_text), "objects": ("selector", _from_object)}
    for section in sections(document):
        key, compute = functions[section]
        for case in document[section]:
            yield Case(f"{section} {case[key]!r}", partial(_differences, case, key, compute, document["labelSets"]))


def _differences(
    case: Mapping[str, Any], key: str, compute: Callable[..., dict[str, Any]], label_sets: list[dict[str, str]]
) -> Iterator[Difference]:
    got = compute(case[key], label_sets)
    yield from compare("", _expected(case, key, got), got)


def _expected(case: Mapping[str, Any], input_key: str, got: Mapping[str, Any]) -> dict[str, Any]:
    """Return upstream's result. Where it reports one of several errors at random, accept any of them."""
    expected = {key: value for key, value in case.items() if key not in {input_key, "errorAlternatives"}}
    if got.get("error") in case.get("errorAlternatives", ()):
        expected["error"] = got["error"]
    return expected


def _from_text(text: str, label_sets: list[dict[str, str]]) -> dict[str, Any]:
    return _result(lambda: parse(text), label_sets)


def _from_object(content: object, label_sets: list[dict[str, str]]) -> dict[str, Any]:
    selector = convert(content, LabelSelector | None)
    result = _result(lambda: from_label_selector(selector), label_sets)
    if result["ok"]:
        result["selectable"] = from_label_selector(selector).selectable
    return result | {"formatLabelSelector": format_label_selector(selector), "plusV": go_syntax(selector)}


def _result(make: Callable[[], Selector], label_sets: list[dict[str, str]]) -> dict[str, Any]:
    try:
        selector = make()
    except SelectorError as error:
        return {"ok": False, "error": str(error), "matches": []}
    return {
        "ok": True,
        "requirements": [
            {"key": requirement.key, "operator": requirement.operator, "values": sorted(set(requirement.values))}
            for requirement in selector.requirements
        ]
        or None,
        "string": str(selector),
        "empty": selector.is_empty,
        "matches": [index for index, labels in enumerate(label_sets) if selector.matches(labels)],
    }

"""Run the vectors of quantities and label selectors: parsing, formatting, arithmetic and matching."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import convert, to_builtins

from autoscaler.conformance.inputs import Comparison, Json
from autoscaler.values.quantity import BINARY_SI, DECIMAL_SI, Quantity, QuantityError
from autoscaler.values.selector import (
    LabelSelector,
    Selector,
    SelectorError,
    format_label_selector,
    from_label_selector,
    go_syntax,
    parse,
)


def parse_quantity(case: Json, _document: Json) -> Comparison:
    """Parse a quantity. Floats are compared as numbers, because Go and Python format them differently."""
    expected = {**case, "s": None, "float": float(case["float"]) if "float" in case else None}
    try:
        quantity = Quantity.parse(case["s"])
    except QuantityError as error:
        return expected, {"ok": False, "error": str(error)}
    text, canonical = str(quantity), quantity.canonical()
    return expected, {
        "ok": True,
        "format": str(quantity.format),
        "string": text,
        "canonical": None if canonical == text else canonical,
        "milliValue": quantity.milli(),
        "value": quantity.value(),
        "float": quantity.to_float(),
        "sign": quantity.sign(),
        "isZero": quantity.sign() == 0,
        "asInt64": quantity.as_int64(),
    }


def compute_quantities(case: Json, _document: Json) -> Comparison:
    """Add, subtract, compare and negate quantities."""
    a, b = Quantity.parse(case["a"]), Quantity.parse(case["b"])
    got = {"add": str(a + b), "sub": str(a - b), "cmp": a.cmp(b), "equal": a == b, "negA": str(-a)}
    return {**case, "a": None, "b": None}, got


def format_quantity(case: Json, _document: Json) -> Comparison:
    """Convert an integer to quantities."""
    return {**case, "v": None}, {
        "milliDecimalSI": str(Quantity.from_milli(case["v"], DECIMAL_SI)),
        "milliBinarySI": str(Quantity.from_milli(case["v"], BINARY_SI)),
        "decimalSI": str(Quantity(case["v"], 0, DECIMAL_SI)),
        "binarySI": str(Quantity(case["v"], 0, BINARY_SI)),
    }


def parse_selector(case: Json, document: Json) -> Comparison:
    """Parse a selector in text form."""
    return {**case, "s": None}, _selector_outputs(lambda: parse(case["s"]), document["labelSets"])


def convert_selector(case: Json, document: Json) -> Comparison:
    """Convert a LabelSelector object. Where upstream reports one of several errors at random, accept any of them."""
    selector = convert(case["selector"], LabelSelector | None)
    got = _selector_outputs(lambda: from_label_selector(selector), document["labelSets"])
    if got["ok"]:
        got["selectable"] = from_label_selector(selector).selectable
    got |= {"formatLabelSelector": format_label_selector(selector), "plusV": go_syntax(selector)}
    expected = {**case, "selector": None, "errorAlternatives": None}
    if got.get("error") in case.get("errorAlternatives", ()):
        expected["error"] = got["error"]
    return expected, got


def _selector_outputs(make: Callable[[], Selector], label_sets: Sequence[Json]) -> dict[str, Any]:
    try:
        selector = make()
    except SelectorError as error:
        return {"ok": False, "error": str(error), "matches": []}
    requirements = [{**to_builtins(entry), "values": sorted(set(entry.values))} for entry in selector.requirements]
    return {
        "ok": True,
        "requirements": requirements or None,
        "string": str(selector),
        "empty": selector.is_empty,
        "matches": [index for index, labels in enumerate(label_sets) if selector.matches(labels)],
    }

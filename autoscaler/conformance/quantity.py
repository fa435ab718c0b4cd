"""Run quantity.json: parsing, formatting and arithmetic of quantities, and conversion from integers."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from autoscaler.conformance.result import Case, Difference, Document, compare
from autoscaler.values.quantity import BINARY_SI, DECIMAL_SI, Quantity, QuantityError

_INPUTS: Final = {"parse": ("s",), "arithmetic": ("a", "b"), "format": ("v",)}


def sections(document: Document) -> tuple[str, ...]:
    """Return the sections of a quantity file, or nothing for other files."""
    return tuple(section for section in _INPUTS if section in document)


def cases(document: Document) -> Iterator[Case]:
    """Yield every case; all fields of upstream's result are compared, and no others are allowed."""
    functions: dict[str, Callable[..., dict[str, Any]]] = {
        "parse": _parsed,
        "arithmetic": _computed,
        "format": _formatted,
    }
    for section in sections(document):
        inputs = _INPUTS[section]
        for case in document[section]:
            name = f"{section} {' '.join(repr(case[key]) for key in inputs)}"
            yield Case(name, partial(_differences, case, inputs, functions[section]))


def _differences(
    case: Mapping[str, Any], inputs: tuple[str, ...], compute: Callable[..., dict[str, Any]]
) -> Iterator[Difference]:
    expected = _comparable({key: value for key, value in case.items() if key not in inputs})
    yield from compare("", expected, compute(*(case[key] for key in inputs)))


def _comparable(expected: Mapping[str, Any]) -> dict[str, Any]:
    """Normalize the float: Go and Python format the same number differently."""
    return {key: repr(float(value)) if key == "float" else value for key, value in expected.items()}


def _parsed(text: str) -> dict[str, Any]:
    try:
        quantity = Quantity.parse(text)
    except QuantityError as error:
        return {"ok": False, "error": str(error)}
    text_form, canonical = str(quantity), quantity.canonical()
    return {
        "ok": True,
        "format": str(quantity.format),
        "string": text_form,
        "canonical": None if canonical == text_form else canonical,
        "milliValue": quantity.milli(),
        "value": quantity.value(),
        "float": repr(quantity.to_float()),
        "sign": quantity.sign(),
        "isZero": quantity.is_zero(),
        "asInt64": quantity.as_int64(),
    }


def _computed(first: str, second: str) -> dict[str, Any]:
    a, b = Quantity.parse(first), Quantity.parse(second)
    return {"add": str(a + b), "sub": str(a - b), "cmp": a.cmp(b), "equal": a == b, "negA": str(-a)}


def _formatted(number: int) -> dict[str, Any]:
    return {
        "milliDecimalSI": str(Quantity.from_milli(number, DECIMAL_SI)),
        "milliBinarySI": str(Quantity.from_milli(number, BINARY_SI)),
        "decimalSI": str(Quantity.from_int(number, DECIMAL_SI)),
        "binarySI": str(Quantity.from_int(number, BINARY_SI)),
    }

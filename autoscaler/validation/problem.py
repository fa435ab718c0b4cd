"""A validation problem with kind, path, value and detail, formatted like Kubernetes' field errors."""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import TypeAlias

from autoscaler.types.record import Record
from autoscaler.values.names import go_json, quoted
from autoscaler.values.quantity import Quantity


class ProblemKind(Enum):
    """The kind of a problem: machine-readable code and displayed text."""

    REQUIRED = ("FieldValueRequired", "Required value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")

    def __init__(self, code: str, label: str) -> None:
        self.code = code
        self.label = label


class EnumValue(str):
    """A string of a named Go type, such as a metric type; Kubernetes formats it as JSON instead of with %q."""

    __slots__ = ()


Value: TypeAlias = int | str | EnumValue | Quantity
NameRule: TypeAlias = Callable[[str], list[str]]


class ValidationProblem(Record):
    """A problem with one field."""

    kind: ProblemKind
    path: str
    value: Value | None = None
    """The invalid value; None if the kind does not show it."""

    detail: str = ""

    @property
    def body(self) -> str:
        """The message without the path."""
        parts = (self.kind.label, *(() if self.value is None else (_format_value(self.value),)), self.detail)
        return ": ".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


def required(path: str, detail: str = "") -> ValidationProblem:
    return ValidationProblem(ProblemKind.REQUIRED, path, None, detail)


def invalid(path: str, value: Value, detail: str) -> ValidationProblem:
    return ValidationProblem(ProblemKind.INVALID, path, value, detail)


def not_supported(path: str, value: str, supported: Iterable[str]) -> ValidationProblem:
    detail = f"supported values: {', '.join(map(quoted, sorted(supported)))}"
    return ValidationProblem(ProblemKind.NOT_SUPPORTED, path, EnumValue(value), detail)


def forbidden(path: str, detail: str) -> ValidationProblem:
    return ValidationProblem(ProblemKind.FORBIDDEN, path, None, detail)


def too_long(path: str, max_bytes: int) -> ValidationProblem:
    return ValidationProblem(ProblemKind.TOO_LONG, path, None, f"may not be more than {max_bytes} bytes")


def name_problems(path: str, name: str, rule: NameRule, missing: str = "") -> Iterator[ValidationProblem]:
    """Yield the problems of a required name; ``rule`` returns the details of those of a name that is present."""
    if not name:
        yield required(path, missing)
    else:
        for detail in rule(name):
            yield invalid(path, name, detail)


def _format_value(value: Value) -> str:
    match value:
        case EnumValue():
            return go_json(value)
        case str():
            return quoted(value)
        case Quantity():
            return f'"{value}"'
        case _:
            return str(value)

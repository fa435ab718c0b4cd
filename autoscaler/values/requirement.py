"""One requirement of a label selector: key, operator and values."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from autoscaler.values.amount import parse_int64
from autoscaler.values.names import go_json, label_key_problems, label_value_problems, quoted

Labels: TypeAlias = Mapping[str, str]

EQUALS: Final = "="
DOUBLE_EQUALS: Final = "=="
NOT_EQUALS: Final = "!="
IN: Final = "in"
NOT_IN: Final = "notin"
EXISTS: Final = "exists"
DOES_NOT_EXIST: Final = "!"
GREATER_THAN: Final = "gt"
LESS_THAN: Final = "lt"

_SIGNS: Final = {GREATER_THAN: ">", LESS_THAN: "<"}
_NOT_AN_INTEGER: Final = "for 'Gt', 'Lt' operators, the value must be an integer"


class SelectorError(ValueError):
    """The selector is invalid; the message is that of Kubernetes."""


class Requirement(Struct, frozen=True):
    """A condition on one label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator == EXISTS:
            return self.key
        if self.operator == DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in {IN, NOT_IN}:
            return f"{self.key} {self.operator} ({values})"
        return f"{self.key}{_SIGNS.get(self.operator, self.operator)}{values}"

    def exact_value(self) -> str | None:
        """Return the only value that the label may have, if there is exactly one."""
        return self.values[0] if len(self.values) == 1 and self.operator in {EQUALS, DOUBLE_EQUALS, IN} else None

    def predicate(self) -> Callable[[Labels], bool]:
        key, values = self.key, frozenset(self.values)
        match self.operator:
            case "=" | "==" | "in":
                return lambda labels: labels.get(key) in values
            case "!=" | "notin":
                return lambda labels: labels.get(key) not in values
            case "exists":
                return lambda labels: key in labels
            case "!":
                return lambda labels: key not in labels
            case _:
                return self._number_predicate()

    def _number_predicate(self) -> Callable[[Labels], bool]:
        key, limit = self.key, int(self.values[0])
        greater = self.operator == GREATER_THAN

        def holds(labels: Labels) -> bool:
            number = parse_int64(labels.get(key, ""))
            return number is not None and (number > limit if greater else number < limit)

        return holds


def make_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """Return a validated requirement; raise SelectorError with all problems."""
    problems = list(dict.fromkeys(_problems(key, operator, values)))
    if problems:
        raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return Requirement(key, operator, values)


def key_problem(key: str, path: str) -> str | None:
    """Return the problem of a label key; None if it is valid."""
    problems = label_key_problems(key)
    return f"{path}: Invalid value: {quoted(key)}: {'; '.join(problems)}" if problems else None


def _problems(key: str, operator: str, values: tuple[str, ...]) -> Iterator[str]:
    if problem := key_problem(key, "key"):
        yield problem
    if problem := _count_problem(operator, len(values)):
        yield f"values: Invalid value: {go_json(values) if values else 'null'}: {problem}"
    if operator in _SIGNS:
        for index, value in enumerate(values):
            if parse_int64(value) is None:
                yield f"values[{index}]: Invalid value: {quoted(value)}: {_NOT_AN_INTEGER}"
    for index, value in enumerate(values):
        if problems := label_value_problems(value):
            yield f"values[{index}][{key}]: Invalid value: {quoted(value)}: {'; '.join(problems)}"


def _count_problem(operator: str, count: int) -> str | None:
    match operator:
        case "in" | "notin":
            return None if count else "for 'in', 'notin' operators, values set can't be empty"
        case "=" | "==" | "!=":
            return None if count == 1 else "exact-match compatibility requires one single value"
        case "exists" | "!":
            return "values set must be empty for exists and does not exist" if count else None
        case _:
            return None if count == 1 else "for 'Gt', 'Lt' operators, exactly one value is required"

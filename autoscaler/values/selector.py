"""Label selectors: the object in a spec, the text in a query, and the parsed form that matches labels.

`LabelSelector` is what the API holds; `Selector` is what both it and a query such as `app in (a,b),!old` mean. Errors
are in Kubernetes' words, down to the `<nil>` where upstream prints a path that it does not have.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Final, Optional, TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr

from autoscaler.values.names import quoted
from autoscaler.values.requirement import (
    DOES_NOT_EXIST,
    EQUALS,
    EXISTS,
    IN,
    NOT_IN,
    Labels,
    Requirement,
    SelectorError,
    checked,
)
from autoscaler.values.selector_text import requirements_in

__all__ = [
    "LabelSelector",
    "LabelSelectorRequirement",
    "Requirement",
    "Selector",
    "SelectorError",
    "format_label_selector",
    "from_label_selector",
    "go_syntax",
    "parse",
]

_OBJECT_OPERATORS: Final = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": DOES_NOT_EXIST}
_WORD: Final = 64

if TYPE_CHECKING:
    _T = TypeVar("_T")
    Nullable: TypeAlias = Annotated[_T, "null is read as empty"]
else:
    # The API allows null wherever a list or a map may be empty; made empty on arrival, no reader need ask.
    Nullable = Optional


class LabelSelectorRequirement(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One match expression, as the user wrote it; anything may be wrong with it."""

    key: str = field(default_factory=str)  # a factory's default is not omitted, and upstream omits neither of the two
    operator: str = field(default_factory=str)
    values: Nullable[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not self.values:
            force_setattr(self, "values", ())


class LabelSelector(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A label selector as the user wrote it: all of the labels and all of the expressions must hold."""

    match_labels: Nullable[Mapping[str, str]] = field(default_factory=dict)
    match_expressions: Nullable[tuple[LabelSelectorRequirement, ...]] = ()

    def __post_init__(self) -> None:
        if not self.match_labels:
            force_setattr(self, "match_labels", {})
        if not self.match_expressions:
            force_setattr(self, "match_expressions", ())


class Selector:
    """A selector that makes sense: immutable, comparable, and quick to ask about the labels of many pods."""

    __slots__ = ("_exact", "_hash", "_tests", "requirements", "selectable", "weight")

    def __init__(self, requirements: Iterable[Requirement] = (), *, selectable: bool = True) -> None:
        self.requirements: Final = tuple(sorted(requirements, key=_key))
        self.selectable: Final = selectable
        exact = [(requirement, requirement.exact()) for requirement in self.requirements]
        self._exact: Final = tuple((requirement.key, value) for requirement, value in exact if value is not None)
        self._tests: Final = tuple(requirement.test() for requirement, value in exact if value is None)
        self._hash: Final = hash((self.requirements, self.selectable))  # it is the key of much that is remembered
        words = [word for requirement in self.requirements for word in (requirement.key, *requirement.values)]
        self.weight: Final = sum(map(len, words)) + _WORD * len(words)
        """About how many bytes it takes to keep it."""

    @property
    def is_empty(self) -> bool:
        """Whether it holds for everything because it asks for nothing."""
        return self.selectable and not self.requirements

    def matches(self, labels: Labels) -> bool:
        """Say whether the labels are as required."""
        for key, value in self._exact:
            if labels.get(key) != value:
                return False
        for test in self._tests:
            if not test(labels):
                return False
        return self.selectable

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"Selector({str(self)!r})" if self.selectable else "Selector(nothing)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self.requirements == other.requirements and self.selectable == other.selectable

    def __hash__(self) -> int:
        return self._hash


def from_label_selector(selector: LabelSelector | None) -> Selector:
    """Make sense of an API object, or raise SelectorError. None at all selects nothing, an empty one everything."""
    if selector is None:
        return Selector(selectable=False)
    requirements = [checked(key, EQUALS, (value,)) for key, value in sorted(selector.match_labels.items())]
    for expression in selector.match_expressions:
        operator = _OBJECT_OPERATORS.get(expression.operator)
        if operator is None:
            raise SelectorError(f"{quoted(expression.operator)} is not a valid label selector operator")
        requirements.append(checked(expression.key, operator, expression.values))
    return Selector(requirements)


def format_label_selector(selector: LabelSelector | None) -> str:
    """Print an API object as kubectl does."""
    try:
        return str(from_label_selector(selector)) or "<none>"
    except SelectorError:
        return "<error>"


def go_syntax(selector: LabelSelector | None) -> str:
    """Print an API object as Go's %+v does; the HPA's messages have selectors in that form."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one.key},Operator:{one.operator},Values:[{' '.join(one.values)}],}},"
        for one in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def parse(text: str) -> Selector:
    """Read a selector from a query, such as `app=web,tier in (front,back),!old`; raise SelectorError if it is none."""
    return Selector(requirements_in(text))


def _key(requirement: Requirement) -> str:
    return requirement.key

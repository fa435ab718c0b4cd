"""Label selectors: the API object, the query text, and the parsed form that matches labels.

`LabelSelector` is the API object. `Selector` is the parsed form of both a `LabelSelector` and a query text such as
`app in (a,b),!old`. Error messages are those of Kubernetes, including `<nil>` for a missing path.
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
    make_requirement,
)
from autoscaler.values.selector_text import parse_requirements

__all__ = [
    "MAX_REQUIREMENTS",
    "MAX_SELECTOR_LENGTH",
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

MAX_REQUIREMENTS: Final = 64
MAX_SELECTOR_LENGTH: Final = 32768
"""Limits of a selector of metrics, which bound the cost of a read. Kubernetes has no such limits."""

_OBJECT_OPERATORS: Final = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": DOES_NOT_EXIST}
_STRING_OVERHEAD: Final = 64

if TYPE_CHECKING:
    _T = TypeVar("_T")
    Nullable: TypeAlias = Annotated[_T, "null is read as empty"]
else:
    # The API allows null instead of an empty list or map; it is replaced by an empty one when decoded.
    Nullable = Optional


class LabelSelectorRequirement(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A match expression as written by the user, not validated."""

    key: str = field(default_factory=str)  # msgspec never omits a default_factory; upstream encodes both
    operator: str = field(default_factory=str)
    values: Nullable[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not self.values:
            force_setattr(self, "values", ())


class LabelSelector(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A label selector as written by the user, not validated; all labels and expressions must match."""

    match_labels: Nullable[Mapping[str, str]] = field(default_factory=dict)
    match_expressions: Nullable[tuple[LabelSelectorRequirement, ...]] = ()

    def __post_init__(self) -> None:
        if not self.match_labels:
            force_setattr(self, "match_labels", {})
        if not self.match_expressions:
            force_setattr(self, "match_expressions", ())


class Selector:
    """A valid selector: immutable, hashable, and fast to match with the labels of many pods."""

    __slots__ = ("_exact", "_hash", "_predicates", "length", "requirements", "selectable", "weight")

    def __init__(self, requirements: Iterable[Requirement] = (), *, selectable: bool = True) -> None:
        self.requirements: Final = tuple(sorted(requirements, key=_key))
        self.selectable: Final = selectable
        exact = [(requirement, requirement.exact_value()) for requirement in self.requirements]
        self._exact: Final = tuple((requirement.key, value) for requirement, value in exact if value is not None)
        self._predicates: Final = tuple(requirement.predicate() for requirement, value in exact if value is None)
        self._hash: Final = hash((self.requirements, self.selectable))  # selectors are keys of several caches
        strings = [text for requirement in self.requirements for text in (requirement.key, *requirement.values)]
        self.length: Final = sum(map(len, strings)) + len(strings)
        """Approximate length of the text."""

        self.weight: Final = self.length + (_STRING_OVERHEAD - 1) * len(strings)
        """Approximate size in bytes, for caches with a size limit."""

    @property
    def is_empty(self) -> bool:
        """Whether the selector matches everything."""
        return self.selectable and not self.requirements

    def matches(self, labels: Labels) -> bool:
        for key, value in self._exact:
            if labels.get(key) != value:
                return False
        for predicate in self._predicates:
            if not predicate(labels):
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
    """Parse an API object; raise SelectorError if invalid. None selects nothing, an empty selector everything."""
    if selector is None:
        return Selector(selectable=False)
    requirements = [make_requirement(key, EQUALS, (value,)) for key, value in sorted(selector.match_labels.items())]
    for expression in selector.match_expressions:
        operator = _OBJECT_OPERATORS.get(expression.operator)
        if operator is None:
            raise SelectorError(f"{quoted(expression.operator)} is not a valid label selector operator")
        requirements.append(make_requirement(expression.key, operator, expression.values))
    return Selector(requirements)


def format_label_selector(selector: LabelSelector | None) -> str:
    """Format an API object like kubectl."""
    try:
        return str(from_label_selector(selector)) or "<none>"
    except SelectorError:
        return "<error>"


def go_syntax(selector: LabelSelector | None) -> str:
    """Format an API object like Go's %+v, as in the HPA controller's messages."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{item.key},Operator:{item.operator},Values:[{' '.join(item.values)}],}},"
        for item in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def parse(text: str, max_requirements: int | None = None) -> Selector:
    """Parse a selector such as `app=web,tier in (front,back),!old`; raise SelectorError if it is invalid."""
    return Selector(parse_requirements(text, max_requirements))


def _key(requirement: Requirement) -> str:
    return requirement.key

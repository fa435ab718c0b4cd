"""The syntax tree of a PromQL expression.

Parentheses are not part of the tree: the printer adds them.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from autoscaler.types.record import Record

NAME_LABEL: Final = "__name__"


class LabelMatcher(Record, frozen=True):
    """A condition on one label."""

    label: str
    operator: str
    value: str


class LabelClause(Record, frozen=True):
    """A keyword with a list of labels, such as ``by (a, b)``."""

    keyword: str
    labels: tuple[str, ...]


class TimeModifiers(Record, frozen=True):
    """The modifiers ``@`` and ``offset``."""

    at: str = ""
    """``start()``, ``end()`` or seconds; empty: no modifier."""

    offset: timedelta = timedelta()


class Expression(Record, frozen=True):
    """A node of the syntax tree."""

    @property
    def operands(self) -> "tuple[Expression, ...]":
        return ()


class VectorSelector(Expression, frozen=True):
    """A selector of series; with a range it selects range vectors."""

    name: str = ""
    """The metric's name in front of the braces; empty: the selector has only matchers."""

    matchers: tuple[LabelMatcher, ...] = ()
    range: timedelta | None = None
    time: TimeModifiers = TimeModifiers()


class Subquery(Expression, frozen=True):
    """An expression that is evaluated at several times."""

    operand: Expression
    range: timedelta
    step: timedelta | None = None
    time: TimeModifiers = TimeModifiers()

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.operand,)


class NumberLiteral(Expression, frozen=True):
    """A number."""

    value: float


class StringLiteral(Expression, frozen=True):
    """A string."""

    value: str


class Negation(Expression, frozen=True):
    """A unary minus."""

    operand: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.operand,)


class FunctionCall(Expression, frozen=True):
    """A call of a function."""

    function: str
    operands: tuple[Expression, ...] = ()  # overrides the property


class AggregateExpression(Expression, frozen=True):
    """An aggregation of series, such as ``sum by (a) (x)``."""

    operator: str
    operand: Expression
    parameter: Expression | None = None
    clause: LabelClause | None = None

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.operand,) if self.parameter is None else (self.parameter, self.operand)


class BinaryExpression(Expression, frozen=True):
    """A binary operation."""

    operator: str
    left: Expression
    right: Expression
    is_bool: bool = False
    clauses: tuple[LabelClause, ...] = ()
    """``on`` or ``ignoring``, then ``group_left`` or ``group_right``."""

    fill: tuple[tuple[str, float], ...] = ()
    """The modifiers ``fill_left`` and ``fill_right`` with their values."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.left, self.right


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and all expressions within it, from left to right."""
    pending = [expression]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(current.operands))


def vector_selectors(expression: Expression) -> list[VectorSelector]:
    return [each for each in walk(expression) if isinstance(each, VectorSelector)]

"""Printing of PromQL syntax trees.

The text is unambiguous for every server: operands that are operations have parentheses, and a metric name that is a
keyword in PromQL or MetricsQL is printed as a matcher. No text of the original query is copied.
"""

import math
import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final, TypeAlias

from adapter.rules.promql import expression as tree
from adapter.rules.promql.matchers import quote

Matchers: TypeAlias = Callable[[tree.VectorSelector], Iterable[str]]

_METRIC_NAME: Final = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*", re.ASCII)
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_RESERVED: Final = """
and or unless atan2 offset by without on ignoring group_left group_right bool inf nan start end step range fill
fill_left fill_right smoothed anchored with default if ifnot limit keep_metric_names prefix
sum min max avg group stddev stdvar count count_values bottomk topk quantile limitk limit_ratio
"""
_KEYWORDS: Final = frozenset(_RESERVED.split())
_UNITS: Final = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}


def to_text(expression: tree.Expression, matchers: Matchers | None = None) -> str:
    """Return the expression as text. ``matchers`` returns the matchers of a selector as texts; default: its own."""
    return _Printer(matchers or _own_matchers).text(expression)


def matcher_text(matcher: tree.LabelMatcher) -> str:
    return f"{_label(matcher.label)}{matcher.operator}{quote(matcher.value)}"


def clause_text(clause: tree.LabelClause) -> str:
    return f"{clause.keyword} ({', '.join(map(_label, clause.labels))})"


def _own_matchers(selector: tree.VectorSelector) -> Iterable[str]:
    return map(matcher_text, selector.matchers)


class _Printer:
    def __init__(self, matchers: Matchers) -> None:
        self._matchers = matchers

    def text(self, expression: tree.Expression) -> str:
        match expression:
            case tree.VectorSelector():
                return self._selector(expression)
            case tree.Subquery(operand, range_, step, time):
                steps = "" if step is None else _duration(step)
                return f"{self._subquery_operand(operand)}[{_duration(range_)}:{steps}]{_time_modifiers(time)}"
            case tree.NumberLiteral(value):
                return _number(value)
            case tree.StringLiteral(value):
                return quote(value)
            case tree.Negation(operand):
                return f"-{self._operand(operand)}"
            case tree.FunctionCall(function, operands):
                return f"{function}({', '.join(map(self.text, operands))})"
            case tree.AggregateExpression(operator, clause=clause, operands=operands):
                grouping = f" {clause_text(clause)} " if clause else ""
                return f"{operator}{grouping}({', '.join(map(self.text, operands))})"
            case tree.BinaryExpression():
                return self._binary(expression)
            case _:  # pragma: no cover - there are no other expressions
                raise TypeError(expression)

    def _operand(self, expression: tree.Expression) -> str:
        text = self.text(expression)
        is_operation = isinstance(expression, tree.BinaryExpression | tree.Negation) or text.startswith("-")
        return f"({text})" if is_operation else text

    def _subquery_operand(self, expression: tree.Expression) -> str:
        match expression:
            case tree.VectorSelector(time=time) | tree.Subquery(time=time) if _time_modifiers(time):
                return f"({self.text(expression)})"
            case _:
                return self._operand(expression)

    def _binary(self, binary: tree.BinaryExpression) -> str:
        words = [self._operand(binary.left), binary.operator]
        words += ["bool"] if binary.is_bool else []
        words += map(clause_text, binary.clauses)
        words += (f"{keyword} ({_number(value)})" for keyword, value in binary.fill)
        return " ".join([*words, self._operand(binary.right)])

    def _selector(self, selector: tree.VectorSelector) -> str:
        matchers, name = list(self._matchers(selector)), selector.name
        if name and (name.lower() in _KEYWORDS or not _METRIC_NAME.fullmatch(name)):
            matchers.insert(0, f"{tree.NAME_LABEL}={quote(name)}")
            name = ""
        braces = f"{{{','.join(matchers)}}}" if matchers else ""
        range_ = "" if selector.range is None else f"[{_duration(selector.range)}]"
        return f"{name}{braces}{range_}{_time_modifiers(selector.time)}"


def _label(label: str) -> str:
    return label if _LABEL.fullmatch(label) else quote(label)


def _time_modifiers(time: tree.TimeModifiers) -> str:
    at = f" @ {time.at}" if time.at else ""
    return f"{at} offset {_duration(time.offset)}" if time.offset else at


def _duration(value: timedelta) -> str:
    sign, value = ("-", -value) if value < timedelta() else ("", value)
    unit, length = next((unit, length) for unit, length in _UNITS.items() if not value % length)
    return f"{sign}{value // length}{unit}"


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return repr(value).removesuffix(".0")

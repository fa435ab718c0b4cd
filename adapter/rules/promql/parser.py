"""Parsing of PromQL with the library promql-parser, whose grammar follows Prometheus'.

The time that the library takes grows with the square of the number of operators and parentheses, and thousands of them
overflow the C stack, so their number is limited before the library is called. Syntax that the library does not know, or
whose values it cannot represent exactly, is rejected.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import promql_parser as library

from adapter.rules.promql import expression as tree
from adapter.rules.promql.errors import PromqlError
from adapter.rules.promql.string_literals import extract_strings

MAX_BYTES: Final = 65_536
MAX_OPERATORS: Final = 300
_OPERATOR: Final = re.compile(r"[-+*/%^(\[<>]|[!=]=|\b(?:and|or|unless|atan2)\b", re.IGNORECASE | re.ASCII)
_REASONS: Final = {
    "invalid promql query": "syntax error; only standard PromQL is supported, no extensions and no experimental syntax",
    "metric name must not be set twice": "a selector has a metric name in front of its braces and inside them",
}
_EXTENSION: Final = re.compile(r"\b(?:with|default|if|ifnot|keep_metric_names|smoothed|anchored)\b", re.IGNORECASE)
_NEGATIVE_TIMESTAMP: Final = re.compile(r"@\s*-")
_MATCH_OPERATORS: Final = {"Equal": "=", "NotEqual": "!=", "Re": "=~", "NotRe": "!~"}
_GROUP_KEYWORDS: Final = {"ManyToOne": "group_left", "OneToMany": "group_right"}
_MILLISECOND: Final = timedelta(milliseconds=1)

# A function of Prometheus 2 that Prometheus 3 has under another name.
_HOLT_WINTERS: Final = library.Function(
    "holt_winters",
    [library.ValueType.Matrix, library.ValueType.Scalar, library.ValueType.Scalar],
    library.ValueType.Vector,
)
library.register_extra_functions([_HOLT_WINTERS])


def parse(text: str, max_operators: int = MAX_OPERATORS) -> tree.Expression:
    """Return the syntax tree of an expression; raise ``PromqlError`` if it is invalid or not supported."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise PromqlError(f"the query must be no longer than {MAX_BYTES} bytes")
    without_strings, strings = extract_strings(text)
    if sum(1 for _ in _OPERATOR.finditer(without_strings)) > max_operators:
        raise PromqlError(f"the query must have no more than {max_operators} operators and parentheses")
    if _NEGATIVE_TIMESTAMP.search(without_strings):
        raise PromqlError("the timestamp of a modifier @ must not be negative")
    try:
        return _Conversion(strings).expression(library.parse(without_strings))
    except PromqlError:
        raise
    except (ValueError, OverflowError) as error:
        raise PromqlError(f"invalid PromQL: {_reason(str(error), without_strings)}") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # not an Exception: raised by the library for numbers out of range
            raise
        raise PromqlError("invalid PromQL: a duration or timestamp is out of range") from None


def _reason(message: str, text: str) -> str:
    """Return the library's message, or a better one; numbers in it may stand for strings of the query."""
    reason = _REASONS.get(message.partition(":")[0], message)
    extension = _EXTENSION.search(text)
    return f"{reason}, such as {extension[0]!r}" if extension and reason.startswith("syntax error") else reason


class _Conversion:
    """Conversion of the library's syntax tree, with the strings that were replaced by their numbers."""

    def __init__(self, strings: tuple[str, ...]) -> None:
        self._strings = strings
        self._converters: dict[type, Callable[[Any], tree.Expression]] = {
            library.VectorSelector: self._selector,
            library.MatrixSelector: self._range_selector,
            library.SubqueryExpr: self._subquery,
            library.NumberLiteral: lambda node: tree.NumberLiteral(node.val),
            library.StringLiteral: lambda node: tree.StringLiteral(self._string(node.val)),
            library.ParenExpr: lambda node: self.expression(node.expr),
            library.UnaryExpr: lambda node: tree.Negation(self.expression(node.expr)),
            library.Call: self._call,
            library.AggregateExpr: self._aggregation,
            library.BinaryExpr: self._binary,
        }

    def expression(self, node: library.Expr) -> tree.Expression:
        convert = self._converters.get(type(node))
        if convert is None:  # pragma: no cover - the library has no other types
            raise PromqlError(f"{type(node).__name__} is not supported")
        return convert(node)

    def _string(self, number: str) -> str:
        return self._strings[int(number)]

    def _label(self, name: str) -> str:
        """Return a label's name; a number stands for a quoted name."""
        return self._string(name) if name[:1].isdigit() else name

    def _selector(self, node: library.VectorSelector) -> tree.VectorSelector:
        if node.matchers.or_matchers:
            raise PromqlError("'or' between matchers is not supported; write two selectors joined by 'or'")
        matchers = tuple(
            tree.LabelMatcher(self._label(each.name), _MATCH_OPERATORS[_name(each.op)], self._string(each.value))
            for each in node.matchers.matchers
        )
        return tree.VectorSelector(node.name or "", matchers, None, _time_modifiers(node))

    def _range_selector(self, node: library.MatrixSelector) -> tree.VectorSelector:
        selector = self._selector(node.vector_selector)
        return tree.VectorSelector(selector.name, selector.matchers, _duration(node.range), selector.time)

    def _subquery(self, node: library.SubqueryExpr) -> tree.Subquery:
        if node.range is None:  # pragma: no cover - the grammar requires it
            raise PromqlError("a subquery requires a range")
        step = None if node.step is None else _duration(node.step)
        return tree.Subquery(self.expression(node.expr), _duration(node.range), step, _time_modifiers(node))

    def _call(self, node: library.Call) -> tree.FunctionCall:
        return tree.FunctionCall(node.func.name, tuple(self.expression(each) for each in node.args))

    def _aggregation(self, node: library.AggregateExpr) -> tree.AggregateExpression:
        modifier, clause = node.modifier, None
        if modifier is not None:
            clause = self._clause("by" if _name(modifier.type) == "By" else "without", modifier.labels)
        parameter = None if node.param is None else self.expression(node.param)
        return tree.AggregateExpression(str(node.op), self.expression(node.expr), parameter, clause)

    def _binary(self, node: library.BinaryExpr) -> tree.BinaryExpression:
        left, right, modifier = self.expression(node.lhs), self.expression(node.rhs), node.modifier
        if modifier is None:
            return tree.BinaryExpression(str(node.op), left, right)
        clauses = []
        if modifier.matching is not None:
            keyword = "on" if _name(modifier.matching.type) == "Include" else "ignoring"
            clauses.append(self._clause(keyword, modifier.matching.labels))
        if (keyword := _GROUP_KEYWORDS.get(_name(modifier.card), "")) != "":
            clauses.append(self._clause(keyword, modifier.group_labels or []))
        values = {"fill_left": modifier.fill_values.lhs, "fill_right": modifier.fill_values.rhs}
        fill = tuple((keyword, value) for keyword, value in values.items() if value is not None)
        return tree.BinaryExpression(str(node.op), left, right, modifier.return_bool, tuple(clauses), fill)

    def _clause(self, keyword: str, labels: list[str]) -> tree.LabelClause:
        return tree.LabelClause(keyword, tuple(self._label(each) for each in labels))


def _name(member: object) -> str:
    return str(member).rpartition(".")[2]


def _time_modifiers(node: library.VectorSelector | library.SubqueryExpr) -> tree.TimeModifiers:
    offset = timedelta() if node.offset is None else _duration(node.offset)
    if node.at is None:
        return tree.TimeModifiers("", offset)
    if node.at.at is None:
        return tree.TimeModifiers(f"{_name(node.at.type).lower()}()", offset)
    milliseconds = round(node.at.at.timestamp() * 1000)
    return tree.TimeModifiers(f"{milliseconds // 1000}.{milliseconds % 1000:03}", offset)


def _duration(value: timedelta) -> timedelta:
    if value % _MILLISECOND:
        raise PromqlError("a duration must be a whole number of milliseconds")
    return value

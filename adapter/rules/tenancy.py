"""Restriction of a tenant's query to the series of the tenant's namespace.

The query is parsed, and its syntax tree is printed with a matcher for the namespace label in every vector selector. No
text of the query is copied, so a server that reads the original text differently from the parser cannot return series
of other namespaces. All matchers of a selector must hold, so a matcher of the query itself for the same label can only
reduce the result.
"""

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from adapter.rules.promql import expression as tree
from adapter.rules.promql.errors import PromqlError
from adapter.rules.promql.metricsql import check_common_subset
from adapter.rules.promql.parser import MAX_OPERATORS, parse
from adapter.rules.promql.printer import matcher_text, to_text

Dialect: TypeAlias = Literal["PromQL", "MetricsQL"]

_MAX_OPERATORS: Final = MAX_OPERATORS // 2
"""The restricted query is parsed again for its sample ages; it may have twice as many parentheses."""

_PLACEHOLDER: Final = "<<.LabelMatchers>>"
_STAND_IN_LABEL: Final = "steadyscale_label_matchers"
_STAND_IN: Final = f'{_STAND_IN_LABEL}=""'  # a valid matcher that replaces the placeholder while the query is parsed


def restrict_to_namespace(query: str, label: str, namespace: str, dialect: Dialect = "PromQL") -> str:
    """Return the query with a namespace matcher in every vector selector; raise ``PromqlError`` if that is unsafe."""
    if _STAND_IN_LABEL in query:
        raise PromqlError(f"the label name {_STAND_IN_LABEL!r} is reserved")
    text = query.replace(_PLACEHOLDER, _STAND_IN)
    if "<<" in text:
        raise PromqlError(f"the only template action allowed here is {_PLACEHOLDER}")
    expression = parse(text, _MAX_OPERATORS)
    _reject_unsupported(expression, query.count(_PLACEHOLDER))
    if dialect == "MetricsQL":
        check_common_subset(expression)
    in_namespace = matcher_text(tree.LabelMatcher(label, "=", namespace))

    def matchers(selector: tree.VectorSelector) -> Iterator[str]:
        yield in_namespace
        for each in selector.matchers:
            yield _PLACEHOLDER if each.label == _STAND_IN_LABEL else matcher_text(each)

    restricted = to_text(expression, matchers)
    if restricted.count("<<") != query.count(_PLACEHOLDER):  # written with escapes, it would be rendered as a template
        raise PromqlError("a string may not contain '<<'")
    return restricted


def _reject_unsupported(expression: tree.Expression, placeholders: int) -> None:
    for each in tree.walk(expression):
        if isinstance(each, tree.FunctionCall) and each.function == "info":
            raise PromqlError("info() is not supported: it reads series that the query does not name")
        if isinstance(each, tree.VectorSelector):
            placeholders -= sum(matcher.label == _STAND_IN_LABEL for matcher in each.matchers)
    if placeholders:  # one that is not a complete matcher: inside a string, the matchers would end the string
        raise PromqlError(f"{_PLACEHOLDER} must be a matcher of its own, between the braces of a selector")

"""Restriction of a tenant's query to the series of the tenant's namespace.

A matcher for the namespace label is added to every vector selector of the query. All matchers of a selector must hold,
so a matcher of the query itself for the same label can only reduce the result. A query that cannot be parsed
unambiguously is rejected.
"""

from itertools import pairwise
from typing import Final

from adapter.rules.promql.lexer import PromqlError, add_matchers, tokenize, vector_selectors
from adapter.rules.promql.matchers import equality_matcher

_PLACEHOLDER: Final = "<<.LabelMatchers>>"
_STAND_IN_LABEL: Final = "steadyscale_label_matchers"
_STAND_IN: Final = f'{_STAND_IN_LABEL}=""'  # a valid matcher that replaces the placeholder while the query is parsed
_UNSUPPORTED: Final = {
    "info": "info() is not supported: it reads series that the query does not name",
    "with": "WITH templates are not supported",
}


def restrict_to_namespace(query: str, label: str, namespace: str) -> str:
    """Return the query with a namespace matcher in every vector selector; raise ``PromqlError`` if that is unsafe."""
    if _STAND_IN_LABEL in query:
        raise PromqlError(f"the label name {_STAND_IN_LABEL!r} is reserved")
    text = query.replace(_PLACEHOLDER, _STAND_IN)
    if "<<" in text:
        raise PromqlError(f"the only template action allowed here is {_PLACEHOLDER}")
    _reject_unsupported(text, query.count(_PLACEHOLDER))
    return add_matchers(text, [equality_matcher(label, namespace)]).replace(_STAND_IN, _PLACEHOLDER)


def _reject_unsupported(text: str, placeholders: int) -> None:
    for token, following in pairwise(tokenize(text)):
        if token.kind == "name" and following.text == "(" and token.text.lower() in _UNSUPPORTED:
            raise PromqlError(_UNSUPPORTED[token.text.lower()])
    for selector in vector_selectors(text):
        inside = tokenize(text[selector.opening : selector.end]) if selector.opening is not None else []
        # VictoriaMetrics reads {a="1" or b="2"} as two selectors; a matcher in front would restrict only the first.
        if any(token.kind == "name" and token.text.lower() == "or" for token in inside):
            raise PromqlError("'or' between matchers is not supported; write two selectors joined by 'or'")
        words = [token.text for token in inside]
        positions = [number for number, word in enumerate(words) if word == _STAND_IN_LABEL]
        placeholders -= sum(words[each - 1] in "{," and words[each + 3] in ",}" for each in positions)
    if placeholders:  # one that is not a complete matcher: inside a string, the matchers would end the string
        raise PromqlError(f"{_PLACEHOLDER} must be a matcher of its own, between the braces of a selector")

"""A team's query, made unable to read any series but its namespace's.

The matcher is added at every place of the query that reads series; several matchers of one label must all hold, so
whatever the query itself says of the label can only make it find less. What cannot be read with certainty is refused.
"""

from itertools import pairwise
from typing import Final

from adapter.rules.promql.lexer import PromqlError, tokens, vector_selectors, with_matchers
from adapter.rules.promql.matchers import equals

_PLACEHOLDER: Final = "<<.LabelMatchers>>"
_NAME: Final = "steadyscale_label_matchers"
_STAND_IN: Final = f'{_NAME}=""'
_UNFIT: Final = {
    "info": "info() reads series that the query does not name",
    "with": "WITH templates cannot be read with certainty",
}


def confined(query: str, label: str, namespace: str) -> str:
    """Return the query with the namespace's matcher wherever it reads series; raise ``PromqlError`` if it cannot be."""
    if _NAME in query:
        raise PromqlError(f"{_NAME!r} is not for use in queries")
    text = query.replace(_PLACEHOLDER, _STAND_IN)
    if "<<" in text:
        raise PromqlError(f"of templates only {_PLACEHOLDER} can be used here")
    _refuse_unfit(text)
    _refuse_misplaced(text, query.count(_PLACEHOLDER))
    return with_matchers(text, [equals(label, namespace)]).replace(_STAND_IN, _PLACEHOLDER)


def _refuse_unfit(text: str) -> None:
    found = tokens(text)
    for token, following in pairwise(found):
        if token.kind == "name" and following.text == "(" and token.text.lower() in _UNFIT:
            raise PromqlError(_UNFIT[token.text.lower()])
    for selector in vector_selectors(text):
        if selector.opening is None:
            continue
        # To some servers {a="1" or b="2"} is two selectors, and a matcher in front would only be part of the first.
        inside = tokens(text[selector.opening : selector.end])
        if any(token.kind == "name" and token.text.lower() == "or" for token in inside):
            raise PromqlError("'or' between matchers cannot be confined; write two queries joined by 'or'")


def _refuse_misplaced(text: str, placeholders: int) -> None:
    """Refuse a placeholder that is not a matcher by itself: inside a string, what is put there would end the string."""
    for selector in vector_selectors(text):
        if selector.opening is not None:
            words = [token.text for token in tokens(text[selector.opening : selector.end])]
            at = [number for number, word in enumerate(words) if word == _NAME]
            placeholders -= sum(words[each - 1] in "{," and words[each + 3] in ",}" for each in at)
    if placeholders:
        raise PromqlError(f"{_PLACEHOLDER} can only be a matcher by itself, between the braces of a selector")

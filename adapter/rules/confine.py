"""A team's query, made unable to read any series but its namespace's.

The matcher is added at every place of the query that reads series; several matchers of one label must all hold, so
whatever the query itself says of the label can only make it find less. What cannot be read with certainty is refused.
"""

from itertools import pairwise
from typing import Final

from adapter.rules.promql import PromqlError, tokens, vector_selectors, with_matchers
from adapter.rules.query import equals

_PLACEHOLDER: Final = "<<.LabelMatchers>>"
_STAND_IN: Final = 'steadyscale_label_matchers=""'
_UNFIT: Final = {
    "info": "info() reads series that the query does not name",
    "with": "WITH templates cannot be read with certainty",
}


def confined(query: str, label: str, namespace: str) -> str:
    """Return the query with the namespace's matcher wherever it reads series; raise ``PromqlError`` if it cannot be."""
    if _STAND_IN in query:
        raise PromqlError(f"{_STAND_IN!r} is not for use in queries")
    text = query.replace(_PLACEHOLDER, _STAND_IN)
    if "<<" in text:
        raise PromqlError(f"of templates only {_PLACEHOLDER} can be used here")
    _refuse_unfit(text)
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

"""What can be told of an expression without evaluating it; pure. CloudWatch alone says whether it makes sense."""

import re
from collections.abc import Callable
from typing import Final

_WORDS: Final = re.compile(r"'[^']*'|\"[^\"]*\"|[A-Za-z_][A-Za-z0-9_]*")
"""Texts in quotes, and names outside of them."""


def names(expression: str) -> frozenset[str]:
    """List the names in it: of metrics and of functions."""
    return frozenset(word for word in _WORDS.findall(expression) if word[0] not in "'\"")


def renamed(expression: str, rename: Callable[[str], str]) -> str:
    """Give names other names; what is in quotes is left as it is."""
    return _WORDS.sub(lambda found: found[0] if found[0][0] in "'\"" else rename(found[0]), expression)


def is_select(expression: str) -> bool:
    """Say whether it is a Metrics Insights query."""
    return expression.lstrip().upper().startswith("SELECT")


def finds_metrics(expression: str) -> bool:
    """Say whether how many metrics it looks at is known only afterwards."""
    return is_select(expression) or "SEARCH" in names(expression)


def needs_a_call_to_itself(expression: str) -> bool:
    """Say whether it goes ill with others.

    CloudWatch takes one Metrics Insights query in a call, a search may find as many metrics as a call may have, and
    ``METRICS()`` is about all of a call's.
    """
    return finds_metrics(expression) or "METRICS" in names(expression)

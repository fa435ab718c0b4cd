"""Syntactic analysis of CloudWatch expressions. CloudWatch itself validates them. No I/O."""

import re
from collections.abc import Callable
from typing import Final

_TOKENS: Final = re.compile(r"'[^']*'|\"[^\"]*\"|[A-Za-z_][A-Za-z0-9_]*")
"""Quoted strings, and names outside of them."""


def names(expression: str) -> frozenset[str]:
    """Return the names of metrics and functions in an expression."""
    return frozenset(token for token in _TOKENS.findall(expression) if token[0] not in "'\"")


def rename(expression: str, new_name: Callable[[str], str]) -> str:
    """Replace the names in an expression; quoted strings stay unchanged."""
    return _TOKENS.sub(lambda token: token[0] if token[0][0] in "'\"" else new_name(token[0]), expression)


def is_select(expression: str) -> bool:
    """Return whether it is a Metrics Insights query."""
    return expression.lstrip().upper().startswith("SELECT")


def searches_metrics(expression: str) -> bool:
    """Return whether the number of metrics it reads is known only afterwards."""
    return is_select(expression) or "SEARCH" in names(expression)


def requires_own_request(expression: str) -> bool:
    """Return whether it cannot share a request with other queries.

    CloudWatch accepts one Metrics Insights query per request, a search may find as many metrics as a request may have,
    and ``METRICS()`` refers to all metrics of the request.
    """
    return searches_metrics(expression) or "METRICS" in names(expression)

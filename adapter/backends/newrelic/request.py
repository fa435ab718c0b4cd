"""From the queries of several rules to one document in GraphQL; pure.

What a rule says is never part of the document: queries and accounts are its variables.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

from adapter.backends.newrelic.settings import NewRelicParameters

_LONGEST: Final = 60
"""Seconds that New Relic lets a query take, as a rule."""

PING: Final[dict[str, Any]] = {"query": "{ actor { user { id } } }"}


def request(asked: Sequence[NewRelicParameters], account: int, seconds: float) -> dict[str, Any]:
    """Ask everything at once, each question under a name of its own, which may take so long."""
    patience = min(max(1, math.ceil(seconds)), _LONGEST)
    declared = ", ".join(f"$a{number}: Int!, $q{number}: Nrql!" for number in range(len(asked)))
    questions = " ".join(
        f"{alias(number)}: account(id: $a{number}) {{ nrql(query: $q{number}, timeout: {patience}) "
        "{ results metadata { facets timeWindow { end } } } }"
        for number in range(len(asked))
    )
    variables: dict[str, Any] = {}
    for number, question in enumerate(asked):
        variables[f"a{number}"] = question.account or account
        variables[f"q{number}"] = question.query
    return {"query": f"query({declared}) {{ actor {{ {questions} }} }}", "variables": variables}


def alias(number: int) -> str:
    """Name a question in its call."""
    return f"r{number}"

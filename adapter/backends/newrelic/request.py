"""Construction of one GraphQL document from the queries of several rules. No I/O.

Queries and accounts are variables of the document, so that no text of a rule becomes part of it.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

from adapter.backends.newrelic.settings import NewRelicParameters

_MAX_TIMEOUT: Final = 60
"""Seconds that New Relic allows a query to run in most accounts."""

PING: Final[dict[str, Any]] = {"query": "{ actor { user { id } } }"}


def build_request(batch: Sequence[NewRelicParameters], account: int, seconds: float) -> dict[str, Any]:
    """Return a document with each query under its own alias and a timeout of so many seconds."""
    timeout = min(max(1, math.ceil(seconds)), _MAX_TIMEOUT)
    declarations = ", ".join(f"$a{number}: Int!, $q{number}: Nrql!" for number in range(len(batch)))
    fields = " ".join(
        f"{alias(number)}: account(id: $a{number}) {{ nrql(query: $q{number}, timeout: {timeout}) "
        "{ results metadata { facets timeWindow { end } } } }"
        for number in range(len(batch))
    )
    variables: dict[str, Any] = {}
    for number, parameters in enumerate(batch):
        variables[f"a{number}"] = parameters.account or account
        variables[f"q{number}"] = parameters.query
    return {"query": f"query({declarations}) {{ actor {{ {fields} }} }}", "variables": variables}


def alias(number: int) -> str:
    """Return the alias of a query in its document."""
    return f"r{number}"

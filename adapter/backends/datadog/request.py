"""Construction of one timeseries request from the queries of several rules. No I/O."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from adapter.backends.datadog.settings import FORMULA_NAMES, DatadogParameters

_SINGLE_QUERY = "a"


def build_request(batch: Sequence[DatadogParameters], now: datetime) -> dict[str, Any]:
    """Return the body with one formula for each rule, in order; the rules have the same window.

    The names of queries get a prefix for their rule, so that the names of several rules do not collide.
    """
    queries, formulas = [], []
    for number, parameters in enumerate(batch):
        own = parameters.queries or {_SINGLE_QUERY: parameters.query}
        unique = {name: f"r{number}q{position}" for position, name in enumerate(own)}
        queries += [{"data_source": "metrics", "name": unique[name], "query": query} for name, query in own.items()]
        formulas.append({"formula": rename_queries(parameters.formula or _SINGLE_QUERY, unique)})
    attributes = {
        "from": _milliseconds(now - batch[0].window),
        "to": _milliseconds(now),
        "queries": queries,
        "formulas": formulas,
    }
    return {"data": {"type": "timeseries_request", "attributes": attributes}}


def rename_queries(formula: str, new_names: Mapping[str, str]) -> str:
    """Rename the queries in a formula; functions and quoted strings stay unchanged."""

    def renamed(match: re.Match[str]) -> str:
        name = match["name"]
        return match[0] if not name or match["call"] else new_names.get(name, name)

    return FORMULA_NAMES.sub(renamed, formula)


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)

"""From the questions of several rules to one call in the library's own types, and back to whose series are whose."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from datadog_api_client.v2.model.metrics_data_source import MetricsDataSource
from datadog_api_client.v2.model.metrics_timeseries_query import MetricsTimeseriesQuery
from datadog_api_client.v2.model.query_formula import QueryFormula
from datadog_api_client.v2.model.timeseries_formula_query_request import TimeseriesFormulaQueryRequest
from datadog_api_client.v2.model.timeseries_formula_request import TimeseriesFormulaRequest
from datadog_api_client.v2.model.timeseries_formula_request_attributes import TimeseriesFormulaRequestAttributes
from datadog_api_client.v2.model.timeseries_formula_request_queries import TimeseriesFormulaRequestQueries
from datadog_api_client.v2.model.timeseries_formula_request_type import TimeseriesFormulaRequestType

from adapter.backends.datadog.settings import NAMES, DatadogParameters

_ONLY = "a"


def request(asked: Sequence[DatadogParameters], window: timedelta, now: datetime) -> TimeseriesFormulaQueryRequest:
    """Ask everything at once: one formula for each question, in their order, over queries with names of its own."""
    queries, formulas = [], []
    for number, question in enumerate(asked):
        own = {name: f"r{number}q{place}" for place, name in enumerate(question.queries or (_ONLY,))}
        for name, query in (question.queries or {_ONLY: question.query}).items():
            queries.append(MetricsTimeseriesQuery(MetricsDataSource.METRICS, query, name=own[name]))
        formulas.append(QueryFormula(renamed(question.formula or _ONLY, own)))
    attributes = TimeseriesFormulaRequestAttributes(
        _from=_milliseconds(now - window),
        to=_milliseconds(now),
        queries=TimeseriesFormulaRequestQueries(queries),  # type: ignore[no-untyped-call]
        formulas=formulas,
    )
    return TimeseriesFormulaQueryRequest(
        TimeseriesFormulaRequest(attributes, TimeseriesFormulaRequestType.TIMESERIES_REQUEST)
    )


def renamed(formula: str, names: dict[str, str]) -> str:
    """Call the queries of a formula otherwise; functions and what is in quotes stay as they are."""

    def called(match: re.Match[str]) -> str:
        name = match["name"]
        return match[0] if not name or match["call"] else names.get(name, name)

    return NAMES.sub(called, formula)


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)

"""Settings of the New Relic backend and the parameters of its rules."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from adapter.backends.connection.http_settings import BatchedHttpSettings
from adapter.backends.settings import Parameters, QueryText
from adapter.decoding.problem import Problem

_REGIONS: Final = {"US": "https://api.newrelic.com", "EU": "https://api.eu.newrelic.com"}
_WORD: Final = re.compile(r"[\w.]+")
_NOT_SYNTAX: Final = re.compile(
    r"'(?>(?:\\.|[^'\\])*)(?:'|\\?\Z)|\"(?>(?:\\.|[^\"\\])*)(?:\"|\\?\Z)|`[^`]*+(?:`|\Z)|--[^\n]*+"
    r"|/\*(?>(?:[^*]|\*(?!/))*)(?:\*/|\Z)",
    re.DOTALL,
)
"""Quoted strings, quoted names and comments, in which a keyword is not a clause. One that is not terminated extends to
the end: a search that continued after it would need quadratic time."""


class NewRelicParameters(Parameters, frozen=True):
    """An NRQL query. Each row of its result is a series."""

    selecting: ClassVar[tuple[str, ...]] = ("query", "account")

    query: QueryText
    """NRQL, such as ``SELECT latest(depth) FROM Queue FACET queue LIMIT MAX SINCE 2 minutes ago``. Each attribute after
    FACET is a label."""

    value: str = ""
    """Column with the value, by its name in the result: ``count``, ``average.duration``, or the name after AS. Default:
    the only column."""

    account: int = 0
    """Account ID, if it is not that of the backend."""

    def problems(self, path: str) -> Iterator[Problem]:
        words = set(_WORD.findall(_NOT_SYNTAX.sub(" ", self.query).upper()))
        if not words:
            yield Problem(f"{path}.query", "must not be empty")
        elif not {"SELECT", "FROM"} <= words:
            yield Problem(f"{path}.query", "must contain SELECT and FROM")
        if "TIMESERIES" in words:
            yield Problem(f"{path}.query", "TIMESERIES returns several values per series", hint="use only SINCE")
        if "COMPARE" in words:
            yield Problem(f"{path}.query", "COMPARE WITH returns two values per series", hint="remove it")
        if "FACET" in words and "LIMIT" not in words:
            message = "FACET requires LIMIT, because New Relic returns only ten groups by default"
            yield Problem(f"{path}.query", message, hint="add LIMIT MAX")
        if self.account < 0:
            yield Problem(f"{path}.account", "must be an account ID", value=self.account)


class NewRelic(BatchedHttpSettings, frozen=True, kw_only=True):
    """A New Relic account."""

    backend_class: ClassVar[str] = "adapter.backends.newrelic.backend:NewRelicBackend"
    parameters_type: ClassVar[type[Parameters] | None] = NewRelicParameters
    labels_controlled_by_rules: ClassVar[bool] = True

    account: int
    """Account ID."""

    api_key_file: str
    """File with a user key (``NRAK-...``), read for every request, so that the key can be rotated."""

    region: Literal["US", "EU"] = "US"
    """Data center region of the account."""

    url: str = ""
    """URL of the API without ``/graphql``, such as that of a gateway. Default: that of the region."""

    max_queries_per_request: int = 10
    """Maximum number of rules whose queries share a request. New Relic runs them concurrently."""

    @property
    def provider_url(self) -> str:
        return _REGIONS[self.region]

    def problems(self, path: str) -> Iterator[Problem]:
        if self.account < 1:
            yield Problem(f"{path}.account", "must be an account ID", value=self.account)
        if not self.api_key_file:
            yield Problem(f"{path}.apiKeyFile", "must not be empty")
        if self.url.rstrip("/").endswith("/graphql"):
            yield Problem(f"{path}.url", "must not end with /graphql")
        yield from super().problems(path)

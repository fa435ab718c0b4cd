"""Which account at New Relic, and which query."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Final, Literal

from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.settings import BackendSettings, CircuitBreakerSettings, Parameters, Tls, at_least_one

LONGEST: Final = 16384
"""Characters of a query: a bound of our own, so that one call is never larger than a server takes."""

_REGIONS: Final = {"US": "https://api.newrelic.com", "EU": "https://api.eu.newrelic.com"}
_WORD: Final = re.compile(r"[\w.]+")
_NOT_SYNTAX: Final = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""Texts, names and comments: whatever stands in them is no clause."""


class NewRelicParameters(Parameters, frozen=True):
    """A query, and which of its columns is the number. Each group is a series."""

    query: str
    """NRQL, such as ``SELECT latest(depth) FROM Queue FACET queue LIMIT MAX SINCE 2 minutes ago``; each attribute
    behind FACET is a label."""

    value: str = ""
    """The column with the number, as New Relic calls it: ``count``, ``average.duration``, or what stands behind AS.
    Left out: the only one there is."""

    account: int = 0
    """Another account than the backend's."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        words = set(_WORD.findall(_NOT_SYNTAX.sub(" ", self.query).upper()))
        if not words:
            yield f"{at}.query: must not be empty"
        elif not {"SELECT", "FROM"} <= words:
            yield f"{at}.query: must have SELECT and FROM"
        if len(self.query) > LONGEST:
            yield f"{at}.query: must have at most {LONGEST} characters, has {len(self.query)}"
        if "TIMESERIES" in words:
            yield f"{at}.query: TIMESERIES gives many numbers where one is wanted; use SINCE alone"
        if "COMPARE" in words:
            yield f"{at}.query: COMPARE WITH gives two numbers where one is wanted"
        if "FACET" in words and "LIMIT" not in words:
            yield f"{at}.query: FACET needs LIMIT, such as LIMIT MAX; else New Relic leaves out all groups but ten"
        if self.account < 0:
            yield f"{at}.account: must be the number of an account, is {self.account}"


class NewRelic(BackendSettings, frozen=True):
    """An account at New Relic."""

    opened_by: ClassVar[str] = "adapter.backends.newrelic.backend:NewRelicBackend"
    asked_with: ClassVar[type[Parameters] | None] = NewRelicParameters
    rules_write_labels: ClassVar[bool] = True

    account: int
    """The number of the account whose data is asked for."""

    api_key_file: str
    """A user key (``NRAK-...``), read at every call."""

    region: Literal["US", "EU"] = "US"
    """Where the account is."""

    url: str = ""
    """Where to ask instead of the region's own API, without ``/graphql``."""

    max_queries_per_request: int = 10
    """How many rules' queries go by one call; New Relic runs them at the same time."""

    pace: timedelta = timedelta(milliseconds=200)
    """The least time between two calls. New Relic lets an account be asked 3,000 queries a minute."""

    tls: Tls = Tls()
    proxy_url: str = ""
    """An HTTP proxy on the way. The environment's are not used."""

    max_response_bytes: int = 16 * 1024 * 1024
    """In bytes. More is refused before it fills our memory."""

    breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    @property
    def http(self) -> HttpSettings:
        """How NerdGraph is reached."""
        return HttpSettings(
            url=self.url or _REGIONS[self.region],
            tls=self.tls,
            proxy_url=self.proxy_url,
            max_response_bytes=self.max_response_bytes,
            breaker=self.breaker,
        )

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        if self.account < 1:
            yield f"{at}.account: must be the number of an account, is {self.account}"
        if not self.api_key_file:
            yield f"{at}.apiKeyFile: must not be empty"
        if self.url.rstrip("/").endswith("/graphql"):
            yield f"{at}.url: must be without /graphql"
        yield from self.http.problems(at)
        yield from at_least_one({"maxQueriesPerRequest": self.max_queries_per_request}, at)

"""Which organisation at Datadog, and which query."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import ClassVar, Final

from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.settings import BackendSettings, CircuitBreakerSettings, Parameters, Tls, at_least_one

NAMES: Final = re.compile(r"'[^']*'|\"[^\"]*\"|(?<![\w.])(?P<name>[A-Za-z_]\w*)(?P<call>\s*\()?", re.ASCII)
"""What stands in a formula: texts in quotes, and names, of functions where a parenthesis follows."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_SITE: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+", re.ASCII)


class DatadogParameters(Parameters, frozen=True):
    """One query, or several and a formula; each group is a series with its tags as labels."""

    query: str = ""
    """A metric query, such as ``avg:queue.depth{env:prod} by {queue}``."""

    queries: Mapping[str, str] = {}
    """Instead: queries by names of your choice, for a formula."""

    formula: str = ""
    """What to make of ``queries``, such as ``a / b`` or ``default_zero(a)``."""

    window: timedelta = timedelta(minutes=5)
    """How far back to look for the newest point. The longer, the coarser Datadog's points; those of cloud integrations
    come ten minutes late or more."""

    skip_newest: int = 0
    """How many of the newest points to leave out: the last one may be of an interval that is not over yet."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        if bool(self.query) == bool(self.queries):
            yield f"{at}.query: either this or queries is needed"
        elif self.query and self.formula:
            yield f"{at}.formula: is for queries, which have names"
        elif self.queries and not self.formula:
            yield f"{at}.formula: is needed with queries"
        elif self.queries:
            yield from _formula_problems(self, at)
        if self.query and not self.query.strip():
            yield f"{at}.query: must not be empty"
        if self.window < timedelta(seconds=10):
            yield f"{at}.window: must be at least 10s; Datadog's points are no closer"
        if self.skip_newest < 0:
            yield f"{at}.skipNewest: must not be negative, is {self.skip_newest}"


def _formula_problems(asked: DatadogParameters, at: str) -> Iterator[str]:
    for name, query in asked.queries.items():
        if not _NAME.fullmatch(name):
            yield f"{at}.queries.{name}: a name is small letters, digits and _, beginning with a letter"
        if not query.strip():
            yield f"{at}.queries.{name}: must not be empty"
    found = [match for match in NAMES.finditer(asked.formula) if match["name"]]
    for name in sorted({match["name"] for match in found if match["call"]} & set(asked.queries)):
        yield f"{at}.queries.{name}: is called like a function of the formula; choose another name"
    used = {match["name"] for match in found if not match["call"]}
    for name in sorted(used - set(asked.queries)):
        yield f"{at}.formula: {name!r} is none of the queries"
    for name in sorted(set(asked.queries) - used):
        yield f"{at}.queries.{name}: is not used by the formula"


class Datadog(BackendSettings, frozen=True):
    """An organisation at Datadog."""

    opened_by: ClassVar[str] = "adapter.backends.datadog.backend:DatadogBackend"
    library: ClassVar[tuple[str, ...]] = ("datadog_api_client",)
    extra: ClassVar[str] = "datadog"
    asked_with: ClassVar[type[Parameters] | None] = DatadogParameters
    rules_write_labels: ClassVar[bool] = True

    api_key_file: str
    """Read at every call."""

    application_key_file: str
    """Read at every call; it needs the permission ``timeseries_query``."""

    site: str = "datadoghq.com"
    """Where the organisation is, such as ``datadoghq.eu`` or ``us5.datadoghq.com``."""

    url: str = ""
    """Where to ask instead of ``https://api.SITE``, such as a gateway of your own."""

    max_queries_per_request: int = 35
    """How many rules' questions go by one call."""

    pace: timedelta = timedelta(milliseconds=200)
    """The least time between two calls."""

    tls: Tls = Tls()
    proxy_url: str = ""
    """An HTTP proxy on the way. The environment's are not used."""

    max_response_bytes: int = 16 * 1024 * 1024
    """In bytes. More is refused before it fills our memory."""

    breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    @property
    def http(self) -> HttpSettings:
        """How its API is reached."""
        return HttpSettings(
            url=self.url or f"https://api.{self.site}",
            tls=self.tls,
            proxy_url=self.proxy_url,
            max_response_bytes=self.max_response_bytes,
            breaker=self.breaker,
        )

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        for key, path in (("apiKeyFile", self.api_key_file), ("applicationKeyFile", self.application_key_file)):
            if not path:
                yield f"{at}.{key}: must not be empty"
        if not _SITE.fullmatch(self.site) or self.site.startswith(("app.", "api.")):
            yield f"{at}.site: must be a site without app. or api., such as datadoghq.eu, is {self.site!r}"
        else:
            yield from self.http.problems(at)
        yield from at_least_one({"maxQueriesPerRequest": self.max_queries_per_request}, at)

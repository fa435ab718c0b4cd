"""Settings of the Datadog backend and the parameters of its rules."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import ClassVar, Final

from adapter.backends.connection.http_settings import BatchedHttpSettings
from adapter.backends.settings import Parameters, QueryText
from adapter.decoding.problem import Problem

FORMULA_NAMES: Final = re.compile(r"'[^']*'|\"[^\"]*\"|(?<![\w.])(?P<name>[A-Za-z_]\w*)(?P<call>\s*\()?", re.ASCII)
"""Quoted strings and names in a formula; a name before a parenthesis (``call``) is a function."""

_QUERY_NAME: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_SITE: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+", re.ASCII)


class DatadogParameters(Parameters, frozen=True):
    """One query, or several queries and a formula. Each group of the result is a series with its tags as labels."""

    selecting: ClassVar[tuple[str, ...]] = ("query", "queries", "formula")

    query: QueryText = ""
    """A metric query, such as ``avg:queue.depth{env:prod} by {queue}``."""

    queries: Mapping[str, QueryText] = {}
    """Instead of ``query``: queries by name, for ``formula``."""

    formula: str = ""
    """Formula over ``queries``, such as ``a / b`` or ``default_zero(a)``."""

    window: timedelta = timedelta(minutes=5)
    """How far back to search for the newest point; at least 10s. Datadog returns coarser points for a longer window.
    Metrics of cloud integrations arrive ten minutes late or later and need a longer one."""

    skip_newest: int = 0
    """Number of newest points to ignore: the last point may cover an interval that is not complete yet."""

    def problems(self, path: str) -> Iterator[Problem]:
        if bool(self.query) == bool(self.queries):
            yield Problem(f"{path}.query", "exactly one of query and queries is required")
        elif self.query and self.formula:
            yield Problem(f"{path}.formula", "only valid with queries")
        elif self.queries and not self.formula:
            yield Problem(f"{path}.formula", "required with queries")
        elif self.queries:
            yield from _formula_problems(self, path)
        if self.query and not self.query.strip():
            yield Problem(f"{path}.query", "must not be empty")
        if self.window < timedelta(seconds=10):
            yield Problem(f"{path}.window", "must be at least 10s, the finest resolution of Datadog")
        if self.skip_newest < 0:
            yield Problem(f"{path}.skipNewest", "must not be negative", value=self.skip_newest)


def _formula_problems(parameters: DatadogParameters, path: str) -> Iterator[Problem]:
    queries = parameters.queries
    for name, query in queries.items():
        if not _QUERY_NAME.fullmatch(name):
            message = "name must start with a lowercase letter and contain only lowercase letters, digits and _"
            yield Problem(f"{path}.queries.{name}", message)
        if not query.strip():
            yield Problem(f"{path}.queries.{name}", "must not be empty")
    names = [match for match in FORMULA_NAMES.finditer(parameters.formula) if match["name"]]
    used = {match["name"] for match in names if not match["call"]}
    for name in sorted({match["name"] for match in names if match["call"]} & set(queries)):
        yield Problem(f"{path}.queries.{name}", "has the name of a function in the formula", hint="rename it")
    for name in sorted(used - set(queries)):
        yield Problem(f"{path}.formula", f"{name!r} is not in queries")
    for name in sorted(set(queries) - used):
        yield Problem(f"{path}.queries.{name}", "not used in formula")


class Datadog(BatchedHttpSettings, frozen=True, kw_only=True):
    """A Datadog organization."""

    backend_class: ClassVar[str] = "adapter.backends.datadog.backend:DatadogBackend"
    parameters_type: ClassVar[type[Parameters] | None] = DatadogParameters
    labels_controlled_by_rules: ClassVar[bool] = True

    api_key_file: str
    """File with the API key, read for every request, so that the key can be rotated."""

    application_key_file: str
    """File with the application key, read for every request. The key needs the permission ``timeseries_query``."""

    site: str = "datadoghq.com"
    """Datadog site of the organization, such as ``datadoghq.eu`` or ``us5.datadoghq.com``."""

    url: str = ""
    """URL of the API, such as that of a gateway. Default: ``https://api.SITE``."""

    max_queries_per_request: int = 35
    """Maximum number of rules whose queries share a request."""

    @property
    def provider_url(self) -> str:
        return f"https://api.{self.site}"

    def problems(self, path: str) -> Iterator[Problem]:
        for key, file in (("apiKeyFile", self.api_key_file), ("applicationKeyFile", self.application_key_file)):
            if not file:
                yield Problem(f"{path}.{key}", "must not be empty")
        if not _SITE.fullmatch(self.site) or self.site.startswith(("app.", "api.")):
            yield Problem(f"{path}.site", "must be a site such as datadoghq.eu, without app. or api.", value=self.site)
        else:
            yield from super().problems(path)

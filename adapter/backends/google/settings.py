"""Which project, who we are there, and which of its time series."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Final, Literal

from adapter.backends.connection.urls import parsed, url_problems
from adapter.backends.settings import (
    BackendSettings,
    CircuitBreakerSettings,
    Parameters,
    Price,
    Tls,
    at_least_one,
    tls_problems,
)

_MINUTE: Final = timedelta(minutes=1)
_LONGEST: Final = timedelta(days=7)  # what is older is no reason to scale
_PROJECT: Final = re.compile(r"[a-z0-9][a-z0-9.:-]{0,62}", re.ASCII)
_FIELD: Final = re.compile(r"(metric|resource)\.labels?\.\w+|metadata\.(user|system)_labels\.[\w.-]+|\w+\.type|project")
_MOST_ON_A_PAGE: Final = 100_000
_DOLLARS_A_SERIES: Final = 0.50 / 1_000_000
_OF_FILTERS: Final = ("aligner", "reducer", "group_by", "alignment_period", "window", "delay")

Percentile = Literal["percentile99", "percentile95", "percentile50", "percentile05"]
Shares = Literal["countTrue", "countFalse", "fractionTrue"]
Figures = Literal["none", "min", "max", "mean", "count", "sum", "stddev"]
Changes = Literal["delta", "rate", "interpolate", "nextOlder", "percentChange"]


class GoogleParameters(Parameters, frozen=True):
    """Which time series."""

    filter: str = ""
    """In Monitoring's own words: one ``metric.type``, and whatever else its labels must be, as
    ``metric.type="pubsub.googleapis.com/subscription/num_undelivered_messages"``."""

    promql: str = ""
    """Instead: an expression in PromQL, for what Managed Service for Prometheus collects and for Google's metrics."""

    project: str = ""
    """Whose they are. Left out: the backend's."""

    aligner: Figures | Percentile | Shares | Changes = "none"
    """What becomes of the points of each ``alignmentPeriod``. Distributions need one, as ``percentile99``."""

    reducer: Figures | Percentile | Shares = "none"
    """How several series are made one; needs an ``aligner``."""

    group_by: tuple[str, ...] = ()
    """With a ``reducer``: the fields to keep, as ``resource.labels.subscription_id``; a series for each combination."""

    alignment_period: timedelta = _MINUTE
    """Of an ``aligner``; at least a minute."""

    window: timedelta = timedelta(minutes=5)
    """How far to look back for the newest point, which is the number."""

    delay: timedelta = timedelta()
    """How long to wait until points are believed to be there; Google's own are up to minutes late."""

    max_series: int = 1000
    """More are refused, and not left out."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        if bool(self.filter) == bool(self.promql):
            yield f"{at}.filter: either this or promql is needed"
        elif self.filter and "metric.type" not in self.filter:
            yield f'{at}.filter: must name one metric, as metric.type="pubsub.googleapis.com/topic/byte_cost"'
        if self.project and not _PROJECT.fullmatch(self.project):
            yield f"{at}.project: must be the id or the number of a project, is {self.project!r}"
        yield from at_least_one({"maxSeries": self.max_series}, at)
        yield from self._promql_problems(at) if self.promql else self._aggregation_problems(at)

    def _promql_problems(self, at: str) -> Iterator[str]:
        for key in _OF_FILTERS:
            if getattr(self, key) != getattr(_DEFAULT, key):
                yield f"{at}.{_camel(key)}: is for filter; PromQL has functions for that"

    def _aggregation_problems(self, at: str) -> Iterator[str]:
        if self.reducer != "none" and self.aligner == "none":
            yield f"{at}.aligner: is needed with a reducer; mean is a good one for gauges, rate for counters"
        if self.group_by and self.reducer == "none":
            yield f"{at}.reducer: is needed with groupBy"
        for number, field in enumerate(self.group_by):
            if not _FIELD.fullmatch(field):
                yield f"{at}.groupBy[{number}]: must be a field such as resource.labels.zone, is {field!r}"
        if self.alignment_period < _MINUTE:
            yield f"{at}.alignmentPeriod: must be at least 1m"
        if self.window < (_MINUTE if self.aligner == "none" else self.alignment_period):
            yield f"{at}.window: must be at least 1m, and as long as alignmentPeriod"
        for key, time in (("window", self.window), ("delay", self.delay)):
            if time > _LONGEST:
                yield f"{at}.{key}: must be at most {_LONGEST / timedelta(hours=1):g}h"


_DEFAULT: Final = GoogleParameters()


class Google(BackendSettings, frozen=True):
    """Google Cloud Monitoring."""

    opened_by: ClassVar[str] = "adapter.backends.google.backend:GoogleBackend"
    library: ClassVar[tuple[str, ...]] = ("google.auth",)
    extra: ClassVar[str] = "google"
    asked_with: ClassVar[type[Parameters] | None] = GoogleParameters
    rules_write_labels: ClassVar[bool] = True  # PromQL's label_replace can

    project: str
    """Whose metrics, unless a rule says otherwise: the id or the number of a project."""

    credentials_file: str = ""
    """A key of a service account, or how to log in from elsewhere (``external_account``); read again when it changes.
    Left out: ``GOOGLE_APPLICATION_CREDENTIALS``, else what ``gcloud`` left, else the metadata server: in GKE that is
    workload identity."""

    quota_project: str = ""
    """Whose quota is used and who pays. Left out: as the credentials say."""

    url: str = "https://monitoring.googleapis.com"
    """Where Monitoring is. Without TLS only on this machine."""

    tls: Tls = Tls()
    proxy_url: str = ""
    """An HTTP proxy on the way to whatever is asked by https. The environment's are not used."""

    page_size: int = 1000
    """Series in one answer; all pages are read within the rule's deadline."""

    connections: int = 8
    """Calls in flight at once."""

    calls_per_second: int = 50
    """More wait. Google allows a project some thousands a minute."""

    max_response_bytes: int = 16 * 1024 * 1024
    """In bytes, of each page. More is refused before it fills our memory."""

    breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        for key, project in (("project", self.project), ("quotaProject", self.quota_project or "0")):
            if not _PROJECT.fullmatch(project):
                yield f"{at}.{key}: must be the id or the number of a project, is {project!r}"
        parts = parsed(self.url)
        if parts is None or parts.path.strip("/"):
            yield f"{at}.url: not an https URL with a host and nothing else"
        else:
            yield from url_problems(self.url, f"{at}.url", must_be_encrypted=True)
        yield from url_problems(self.proxy_url, f"{at}.proxyUrl")
        yield from tls_problems(self.tls, f"{at}.tls")
        counts = {"pageSize": self.page_size, "connections": self.connections, "callsPerSecond": self.calls_per_second}
        yield from at_least_one({**counts, "breaker.failures": self.breaker.failures}, at)
        if self.page_size > _MOST_ON_A_PAGE:
            yield f"{at}.pageSize: must be at most {_MOST_ON_A_PAGE}, is {self.page_size}"

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:  # noqa: ARG002
        """Count one series for each question: how many there are only the answer tells."""
        calls = timedelta(days=1) / interval
        hundred = f"a hundred series in each would be ${100 * calls * _DOLLARS_A_SERIES:,.2f}"
        told = f"{calls:,.0f} answers of one series at $0.50 per million series, as since October 2025; {hundred}"
        return Price(calls * _DOLLARS_A_SERIES, f"{told}; a million series a month are free")


def _camel(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(each.title() for each in others)

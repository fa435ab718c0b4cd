"""Settings of the Google Cloud Monitoring backend and the parameters of its rules."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Final, Literal

from adapter.backends.connection.http_settings import HttpApiSettings
from adapter.backends.connection.urls import encryption_problems, parsed
from adapter.backends.settings import Parameters, Price, QueryText, count_problems
from adapter.decoding.problem import Problem

_MINUTE: Final = timedelta(minutes=1)
_MAX_DURATION: Final = timedelta(days=7)
_PROJECT: Final = re.compile(r"[a-z0-9][a-z0-9.:-]{0,62}", re.ASCII)
_FIELD: Final = re.compile(r"(metric|resource)\.labels?\.\w+|metadata\.(user|system)_labels\.[\w.-]+|\w+\.type|project")
_MAX_PAGE_SIZE: Final = 100_000
_DOLLARS_PER_SERIES: Final = 0.50 / 1_000_000
_FILTER_ONLY: Final = frozenset({"aligner", "reducer", "group_by", "alignment_period", "window", "delay"})

Percentile = Literal["percentile99", "percentile95", "percentile50", "percentile05"]
BooleanCount = Literal["countTrue", "countFalse", "fractionTrue"]
Statistic = Literal["none", "min", "max", "mean", "count", "sum", "stddev"]
ChangeOverTime = Literal["delta", "rate", "interpolate", "nextOlder", "percentChange"]


class GoogleParameters(Parameters, frozen=True):
    """Time series by a filter or a PromQL query."""

    selecting: ClassVar[tuple[str, ...]] = ("filter", "promql", "project")

    filter: QueryText = ""
    """A Monitoring filter with one ``metric.type``, such as
    ``metric.type="pubsub.googleapis.com/subscription/num_undelivered_messages"``."""

    promql: QueryText = ""
    """Instead of ``filter``: a PromQL query over Managed Service for Prometheus and the metrics of Google Cloud."""

    project: str = ""
    """Project ID or number. Default: the project of the backend."""

    aligner: Statistic | Percentile | BooleanCount | ChangeOverTime = "none"
    """How the points of each ``alignmentPeriod`` are aggregated. Distributions need one, such as ``percentile99``."""

    reducer: Statistic | Percentile | BooleanCount = "none"
    """How several series are aggregated into one; requires ``aligner``."""

    group_by: tuple[str, ...] = ()
    """With ``reducer``: the fields to keep, such as ``resource.labels.subscription_id``. Each combination of their
    values is a series."""

    alignment_period: timedelta = _MINUTE
    """Length of the intervals of ``aligner``; at least 1m."""

    window: timedelta = timedelta(minutes=5)
    """How far back to search for the newest point, which is the value of the series. At most 168h."""

    delay: timedelta = timedelta()
    """Ignore points that are newer than this: some metrics of Google Cloud are published minutes late. At most 168h."""

    max_series: int = 1000
    """Maximum number of series. A larger result is rejected, never truncated."""

    def problems(self, path: str) -> Iterator[Problem]:
        if bool(self.filter) == bool(self.promql):
            yield Problem(f"{path}.filter", "exactly one of filter and promql is required")
        elif self.filter and "metric.type" not in self.filter:
            message = 'must contain a metric type, such as metric.type="pubsub.googleapis.com/topic/byte_cost"'
            yield Problem(f"{path}.filter", message)
        if self.project and not _PROJECT.fullmatch(self.project):
            yield Problem(f"{path}.project", "must be a project ID or number", value=self.project)
        yield from count_problems({"maxSeries": self.max_series}, path)
        yield from self._promql_problems(path) if self.promql else self._aggregation_problems(path)

    def _promql_problems(self, path: str) -> Iterator[Problem]:
        for field, key in zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True):
            if field in _FILTER_ONLY and getattr(self, field) != getattr(_DEFAULT, field):
                yield Problem(f"{path}.{key}", "not valid with promql", hint="use PromQL functions")

    def _aggregation_problems(self, path: str) -> Iterator[Problem]:
        if self.reducer != "none" and self.aligner == "none":
            hint = "for example mean for gauges and rate for counters"
            yield Problem(f"{path}.aligner", "required with reducer", hint=hint)
        if self.group_by and self.reducer == "none":
            yield Problem(f"{path}.reducer", "required with groupBy")
        for index, field in enumerate(self.group_by):
            if not _FIELD.fullmatch(field):
                yield Problem(f"{path}.groupBy[{index}]", "must be a field such as resource.labels.zone", value=field)
        if self.alignment_period < _MINUTE:
            yield Problem(f"{path}.alignmentPeriod", "must be at least 1m")
        if self.window < (_MINUTE if self.aligner == "none" else self.alignment_period):
            yield Problem(f"{path}.window", "must be at least 1m and at least as long as alignmentPeriod")
        for key, duration in (("window", self.window), ("delay", self.delay)):
            if duration > _MAX_DURATION:
                yield Problem(f"{path}.{key}", f"must be at most {_MAX_DURATION / timedelta(hours=1):g}h")


_DEFAULT: Final = GoogleParameters()


class Google(HttpApiSettings, frozen=True, kw_only=True):
    """Google Cloud Monitoring."""

    backend_class: ClassVar[str] = "adapter.backends.google.backend:GoogleBackend"
    required_modules: ClassVar[tuple[str, ...]] = ("google.auth",)
    extra: ClassVar[str] = "google"
    parameters_type: ClassVar[type[Parameters] | None] = GoogleParameters
    labels_controlled_by_rules: ClassVar[bool] = True  # label_replace of PromQL can set any label

    project: str
    """Project ID or number whose metrics are read; a rule can name another one."""

    credentials_file: str = ""
    """Service account key or ``external_account`` configuration (JSON); read again when it changes. Default: the file
    of ``GOOGLE_APPLICATION_CREDENTIALS``, then the application default credentials of ``gcloud``, then the metadata
    server (in GKE: workload identity)."""

    quota_project: str = ""
    """Project that is charged for quota and billing. Default: that of the credentials."""

    url: str = ""
    """URL of the Monitoring API. Must use https, except on loopback. Default: ``https://monitoring.googleapis.com``."""

    page_size: int = 1000
    """Maximum number of series in one page, at most 100,000. All pages are read within the deadline of the rule."""

    max_connections: int = 8
    """How many requests can be in flight."""

    max_requests_per_second: int = 50
    """Maximum request rate; further requests wait. The quota of a project is several thousand requests per minute."""

    @property
    def provider_url(self) -> str:
        return "https://monitoring.googleapis.com"

    def problems(self, path: str) -> Iterator[Problem]:
        for key, project in (("project", self.project), ("quotaProject", self.quota_project or "0")):
            if not _PROJECT.fullmatch(project):
                yield Problem(f"{path}.{key}", "must be a project ID or number", value=project)
        yield from super().problems(path)
        yield from encryption_problems(self.url, f"{path}.url")
        if (parts := parsed(self.url)) is not None and parts.path.strip("/"):
            yield Problem(f"{path}.url", "must not have a path")
        yield from count_problems(
            {"pageSize": self.page_size, "maxRequestsPerSecond": self.max_requests_per_second}, path
        )
        if self.page_size > _MAX_PAGE_SIZE:
            yield Problem(f"{path}.pageSize", f"must be at most {_MAX_PAGE_SIZE}", value=self.page_size)

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:  # noqa: ARG002
        """Return the price of queries that return one series; the number of series is known only afterwards."""
        queries = timedelta(days=1) / interval
        calculation = (
            f"{queries:,.0f} queries that return one series at $0.50 per million series (since October 2025); "
            f"with a hundred series ${100 * queries * _DOLLARS_PER_SERIES:,.2f}; a million series a month are free"
        )
        return Price(queries * _DOLLARS_PER_SERIES, calculation)

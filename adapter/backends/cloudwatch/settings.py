"""Settings of the CloudWatch backend and the parameters of its rules."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, ClassVar, Final

import msgspec

from adapter.backends.cloudwatch import expressions
from adapter.backends.connection.aws.settings import AwsSettings, region_problems
from adapter.backends.settings import Parameters, Price, QueryText, count_problems
from adapter.decoding.problem import Problem
from autoscaler.types.record import Record

_STATISTIC: Final = re.compile(
    r"Average|Sum|Minimum|Maximum|SampleCount|IQM"
    r"|p\d{1,3}(\.\d{1,10})?|(tm|wm|tc|ts)\d{1,3}(\.\d{1,10})?|(TM|WM|TC|TS|PR)\([\d.%]*:[\d.%]*\)"
)
_ID: Final = re.compile(r"[a-z][A-Za-z0-9_]{0,99}")
_DIMENSION: Final = re.compile(r"[^\s'\"{}$][^'\"{}$]*")
_ACCOUNT: Final = re.compile(r"\d{12}")
_SHORT_PERIODS: Final = frozenset({1, 5, 10, 20, 30})
_DAY: Final = timedelta(days=1)
_DOLLARS_PER_METRIC: Final = 0.01 / 1000
"""Price of one metric of GetMetricData in most regions."""

_AT_MOST_30: Final = msgspec.Meta(max_length=30)
"""CloudWatch's limit on the dimensions of a metric."""


class CloudWatchMetric(Record, frozen=True):
    """One metric of an expression."""

    namespace: str
    """Namespace, such as ``AWS/SQS``."""

    metric: str
    """Name of the metric."""

    dimensions: Annotated[Mapping[str, str], _AT_MOST_30] = {}
    """All dimensions of the metric. CloudWatch treats a different set of dimensions as a different metric."""

    statistic: str = "Average"
    """As ``statistic`` of the rule."""

    unit: str = ""
    """As ``unit`` of the rule."""

    account_id: str = ""
    """As ``accountId`` of the rule."""


class CloudWatchParameters(Parameters, frozen=True):
    """A metric, or an expression over metrics."""

    selecting: ClassVar[tuple[str, ...]] = ("namespace", "metric", "dimensions", "expression", "account_id", "region")

    namespace: str = ""
    """Namespace of the metric, such as ``AWS/SQS``."""

    metric: str = ""
    """Name of the metric."""

    dimensions: Annotated[Mapping[str, str], _AT_MOST_30] = {}
    """All dimensions of the metric; they become the labels of the series. CloudWatch treats a different set of
    dimensions as a different metric."""

    statistic: str = "Average"
    """How the values within one period are aggregated: ``Average``, ``Sum``, ``Minimum``, ``Maximum``,
    ``SampleCount``, a percentile such as ``p95``, or any other CloudWatch statistic such as ``tm90``."""

    unit: str = ""
    """Use only values with this unit, such as ``Seconds``. Default: values of any unit."""

    account_id: str = ""
    """ID of the account that owns the metric, with cross-account monitoring."""

    expression: QueryText = ""
    """Instead of ``metric``: metric math over ``metrics``, a ``SEARCH``, or a Metrics Insights query
    (``SELECT ...``). Each series of the result is a series of the rule."""

    metrics: Mapping[str, CloudWatchMetric] = {}
    """The metrics that the expression uses, by their name in it, such as ``m1``."""

    labels: tuple[str, ...] = ()
    """For an expression with several series: the dimensions that become labels. For a Metrics Insights query: the one
    dimension of its GROUP BY. Default: the series have no labels."""

    period: timedelta = timedelta(minutes=1)
    """Length of the interval of one value: 1, 5, 10, 20 or 30 seconds, or whole minutes up to a day. The newest
    complete period is used. A ``SEARCH`` must contain the same period."""

    window: timedelta = timedelta()
    """How far back to search for the newest value. Default: three periods, and at least 15 minutes."""

    delay: timedelta = timedelta()
    """Ignore periods that ended less than this long ago, for metrics that are published late: an incomplete sum is too
    low."""

    region: str = ""
    """Region of the metric. Default: the region of the backend."""

    def problems(self, path: str) -> Iterator[Problem]:
        if bool(self.metric) == bool(self.expression):
            yield Problem(f"{path}.metric", "exactly one of metric and expression is required")
        elif self.metric:
            yield from _metric_problems(self.single_metric, path)
            if self.metrics or self.labels:
                yield Problem(f"{path}.{'metrics' if self.metrics else 'labels'}", "only valid with expression")
        else:
            yield from self._expression_problems(path)
        yield from self._time_problems(path)
        yield from region_problems(self.region, f"{path}.region")

    @property
    def single_metric(self) -> CloudWatchMetric:
        """The metric of a rule without an expression."""
        return CloudWatchMetric(
            self.namespace, self.metric, self.dimensions, self.statistic, self.unit, self.account_id
        )

    @property
    def effective_window(self) -> timedelta:
        """The window, or its default."""
        return self.window or max(timedelta(minutes=15), 3 * self.period)

    def _expression_problems(self, path: str) -> Iterator[Problem]:
        for key, value in (("namespace", self.namespace), ("dimensions", self.dimensions), ("unit", self.unit)):
            if value:
                yield Problem(f"{path}.{key}", "not valid with expression", hint="set it in metrics")
        used = expressions.names(self.expression)
        for name, metric in self.metrics.items():
            metric_path = f"{path}.metrics.{name}"
            if not _ID.fullmatch(name):
                yield Problem(metric_path, "must start with a lowercase letter and contain only letters, digits and _")
            elif name not in used:
                yield Problem(metric_path, "not used in expression")
            yield from _metric_problems(metric, metric_path)
        if expressions.is_select(self.expression) and len(self.labels) > 1:
            yield Problem(f"{path}.labels", "must have at most one item with SELECT: the dimension of its GROUP BY")
        for label in self.labels:
            if not _DIMENSION.fullmatch(label):
                yield Problem(f"{path}.labels", f"{label!r} is not a valid dimension name")

    def _time_problems(self, path: str) -> Iterator[Problem]:
        seconds = self.period.total_seconds()
        if not (seconds in _SHORT_PERIODS or (seconds >= 60 and seconds % 60 == 0)) or self.period > _DAY:
            yield Problem(f"{path}.period", "must be 1s, 5s, 10s, 20s, 30s or whole minutes, at most 24h")
        elif self.effective_window < self.period:
            yield Problem(f"{path}.window", "must be at least as long as period")


def _metric_problems(metric: CloudWatchMetric, path: str) -> Iterator[Problem]:
    for key, text_value in (("namespace", metric.namespace), ("metric", metric.metric)):
        if not text_value:
            yield Problem(f"{path}.{key}", "must not be empty")
    if not _STATISTIC.fullmatch(metric.statistic):
        message = "must be a CloudWatch statistic such as Average, Sum or p95"
        yield Problem(f"{path}.statistic", message, value=metric.statistic)
    if any(not name or not value for name, value in metric.dimensions.items()):
        yield Problem(f"{path}.dimensions", "names and values must not be empty")
    if metric.account_id and not _ACCOUNT.fullmatch(metric.account_id):
        yield Problem(f"{path}.accountId", "must be a string of twelve digits", hint="quote it in YAML")


class CloudWatch(AwsSettings, frozen=True):
    """Amazon CloudWatch."""

    backend_class: ClassVar[str] = "adapter.backends.cloudwatch.backend:CloudWatchBackend"
    parameters_type: ClassVar[type[Parameters] | None] = CloudWatchParameters
    labels_controlled_by_rules: ClassVar[bool] = True

    max_requests_per_second: int = 10
    """Maximum request rate in each region; further requests wait. The quota of CloudWatch is 50 per second for all
    clients of an account and region."""

    def problems(self, path: str) -> Iterator[Problem]:
        yield from super().problems(path)
        yield from count_problems({"maxRequestsPerSecond": self.max_requests_per_second}, path)

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:
        """Return the price: CloudWatch charges for each metric that a query reads."""
        if not isinstance(parameters, CloudWatchParameters):
            return None
        metrics = max(1, len(parameters.metrics)) * (timedelta(days=1) / interval)
        is_search = expressions.searches_metrics(parameters.expression)
        per_metric = ", for each metric that the expression finds" if is_search else ""
        return Price(metrics * _DOLLARS_PER_METRIC, f"{metrics:,.0f} metrics at $0.01 per 1,000{per_metric}")

"""Which of CloudWatch's metrics a rule asks for, and what to compute of them."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from adapter.backends.cloudwatch import expression as text
from adapter.backends.connection.aws.settings import region_problems
from adapter.backends.settings import Parameters
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
_MOST_DIMENSIONS: Final = 30


class Metric(Record, frozen=True):
    """One metric of CloudWatch."""

    namespace: str
    """As ``AWS/SQS``."""

    metric: str
    """Its name there."""

    dimensions: Mapping[str, str] = {}
    """All of its dimensions: with one fewer it is another metric."""

    statistic: str = "Average"
    """As in the rule's own."""

    unit: str = ""
    """As in the rule's own."""

    account_id: str = ""
    """As in the rule's own."""


class CloudWatchParameters(Parameters, frozen=True):
    """Which metric, or what to compute of which."""

    namespace: str = ""
    """Of the metric, as ``AWS/SQS``."""

    metric: str = ""
    """The metric's name."""

    dimensions: Mapping[str, str] = {}
    """All of the metric's dimensions, which become the series' labels. With one fewer it is another metric."""

    statistic: str = "Average"
    """What becomes of the values within one period: ``Average``, ``Sum``, ``Minimum``, ``Maximum``, ``SampleCount``, a
    percentile such as ``p95``, or any other statistic of CloudWatch such as ``tm90``."""

    unit: str = ""
    """Only values of this unit, as ``Seconds``. Left out: whatever unit they have."""

    account_id: str = ""
    """The account that the metric is in, where this one monitors others."""

    expression: str = ""
    """Instead of one metric: metric math over ``metrics``, a ``SEARCH``, or a Metrics Insights query (``SELECT ...``).
    Each series that comes out is one of ours."""

    metrics: Mapping[str, Metric] = {}
    """What the expression is about: by the name it has there, such as ``m1``, a metric."""

    labels: tuple[str, ...] = ()
    """For an expression that gives several series: the dimensions that become labels. Of a Metrics Insights query one,
    that which it groups by. Left out: the series have no labels."""

    period: timedelta = timedelta(minutes=1)
    """How long each value is over: 1, 5, 10, 20 or 30 seconds, or whole minutes. The newest period that is complete
    counts. In a ``SEARCH`` it must be the same as inside."""

    lookback: timedelta = timedelta()
    """How far back the newest value may be. Left out: three periods, and at least 15 minutes."""

    delay: timedelta = timedelta()
    """How long to leave the newest periods alone, for metrics whose values trickle in: a sum of half of them is low."""

    region: str = ""
    """Where. Left out: the backend's region."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        if bool(self.metric) == bool(self.expression):
            yield f"{at}.metric: either this or expression is needed"
        elif self.metric:
            yield from _metric_problems(self.single, at)
            if self.metrics or self.labels:
                yield f"{at}.{'metrics' if self.metrics else 'labels'}: is for expression, which is not there"
        else:
            yield from self._expression_problems(at)
        yield from self._time_problems(at)
        yield from region_problems(self.region, f"{at}.region")

    @property
    def single(self) -> Metric:
        """The one metric that is asked for, if there is no expression."""
        return Metric(self.namespace, self.metric, self.dimensions, self.statistic, self.unit, self.account_id)

    @property
    def window(self) -> timedelta:
        """How far back to look."""
        return self.lookback or max(timedelta(minutes=15), 3 * self.period)

    def _expression_problems(self, at: str) -> Iterator[str]:
        for key, value in (("namespace", self.namespace), ("dimensions", self.dimensions), ("unit", self.unit)):
            if value:
                yield f"{at}.{key}: is for metric; with expression write it below metrics"
        used = text.names(self.expression)
        for name, metric in self.metrics.items():
            here = f"{at}.metrics.{name}"
            if not _ID.fullmatch(name):
                yield f"{here}: must begin with a small letter and hold only letters, digits and _"
            elif name not in used:
                yield f"{here}: is not used in expression"
            yield from _metric_problems(metric, here)
        if text.is_select(self.expression) and len(self.labels) > 1:
            yield f"{at}.labels: of a SELECT only one, that which it groups by"
        for label in self.labels:
            if not _DIMENSION.fullmatch(label):
                yield f"{at}.labels: {label!r} is not the name of a dimension"

    def _time_problems(self, at: str) -> Iterator[str]:
        seconds = self.period.total_seconds()
        if not (seconds in _SHORT_PERIODS or (seconds >= 60 and seconds % 60 == 0)) or self.period > _DAY:
            yield f"{at}.period: must be 1s, 5s, 10s, 20s, 30s or whole minutes, up to a day"
        elif self.window < self.period:
            yield f"{at}.lookback: must be at least a period"


def _metric_problems(asked: Metric, at: str) -> Iterator[str]:
    for key, value in (("namespace", asked.namespace), ("metric", asked.metric)):
        if not value:
            yield f"{at}.{key}: must not be empty"
    if not _STATISTIC.fullmatch(asked.statistic):
        yield f"{at}.statistic: must be as Average, Sum, Minimum, Maximum, SampleCount or p95, is {asked.statistic!r}"
    if len(asked.dimensions) > _MOST_DIMENSIONS:
        yield f"{at}.dimensions: CloudWatch takes at most {_MOST_DIMENSIONS}, there are {len(asked.dimensions)}"
    for name, value in asked.dimensions.items():
        if not name or not value:
            yield f"{at}.dimensions: a dimension has a name and a value"
    if asked.account_id and not _ACCOUNT.fullmatch(asked.account_id):
        yield f"{at}.accountId: must be twelve digits, in quotes"

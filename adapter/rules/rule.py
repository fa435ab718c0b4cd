"""Rules: the backend query of a metric, its namespaces, and the policies for missing and unusable values.

A policy of the rule may replace a missing or unusable value by zero or skip the series. A failed backend request is
always an error: no value is invented for it, and no old value is served instead.
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

import msgspec

from autoscaler.types.record import Record

INDEX = "externalmetrics"
"""The only resource in discovery. Reading it lists the metrics of a namespace, so no metric can have this name."""

LABEL_MATCHERS = "<<.LabelMatchers>>"
"""The template action that is replaced by the selector of a read, and the only one that an object may use."""

DEFAULT_INTERVAL = timedelta(seconds=15)
"""The interval of a query whose rule has none, unless it is adaptive: the sync period of an HPA."""

STATIC = "static"
"""Name of the backend of static metrics. It always exists and has no configuration."""


class Series(Record, frozen=True):
    """One series of a static metric."""

    value: float
    """The value of the series."""

    labels: Mapping[str, str] = {}
    """Labels that selectors match against."""

    age: timedelta = timedelta()
    """Age of the sample, to test the behaviour with old samples."""


class Namespacing(Record, frozen=True):
    """Assignment of series to namespaces. By default, every namespace reads all series."""

    label: str = ""
    """The label that holds the namespace of a series. A read in namespace ``shop`` sees only the series of
    ``shop``."""

    fixed: str = ""
    """With ``label``: reads in every namespace see the series of this namespace. For shared metrics."""


class Aggregation(StrEnum):
    """How several matching series are combined."""

    SUM = "sum"
    """All series are served, and an HPA adds them."""

    MAX = "max"
    MIN = "min"
    AVG = "avg"
    ONE = "one"
    """Exactly one series may match; more are an error."""


class OnEmpty(StrEnum):
    """Policy for a read that no series matches."""

    ERROR = "error"
    ZERO = "zero"


class OnUnusable(StrEnum):
    """Policy for a series whose value cannot be served."""

    ERROR = "error"
    ZERO = "zero"
    SKIP = "skip"
    """Skip the series. If no series remains, ``onEmpty`` applies."""


class OnTooOld(StrEnum):
    """Policy for a series whose sample is too old. Never ``zero``: the value is unknown."""

    ERROR = "error"
    SKIP = "skip"


class Rule(Record, frozen=True):
    """The definition of one metric."""

    name: str
    """Name of the metric in the HPA. Case is ignored, because the HPA controller converts the name to lower case."""

    static: tuple[Series, ...] = ()
    """Constant series, instead of a backend and a query."""

    namespaces: tuple[str, ...] = ()
    """Namespaces in which the metric can be read; empty: all."""

    aliases: tuple[str, ...] = ()
    """Additional names of the metric."""

    backend: str = ""
    """Name of the configured backend to query."""

    query: str = ""
    """Query in the language of the backend, for all series at once. A query that contains ``<<.LabelMatchers>>`` is a
    template: it is rendered and sent separately for each namespace and selector."""

    parameters: Mapping[str, object] = {}
    """Query of a backend whose queries consist of named parameters instead of a text."""

    series: str = ""
    """Value of ``<<.Series>>`` in a template from prometheus-adapter. If it is set, label matchers are generated as
    prometheus-adapter generates them."""

    namespace: Namespacing | None = None
    """How series are assigned to namespaces. Default: by the label ``namespace`` for a query; static series and
    queries with parameters can be read in every namespace."""

    labels: tuple[str, ...] = ()
    """Labels that a selector may use; empty: any."""

    aggregation: Aggregation = Aggregation.SUM
    """How several matching series are combined. The default ``sum`` is what an HPA does itself."""

    interval: timedelta | None = None
    """How often the query is sent while the metric is being read. Default: adaptive for prometheus, rabbitmq,
    postgresql, redis, nats and kafka, whose requests have no price: fifty times the duration of the query, at least 4 s
    and at most 15 s. 15 s for other kinds, for static metrics and for templates."""

    max_sample_age: timedelta = timedelta(minutes=5)
    """Maximum age of a sample. An older sample is treated as ``onTooOld`` says. HPAs ignore the timestamp of a value,
    so stale values must be detected here."""

    deadline: timedelta = timedelta(seconds=5)
    """How long the backend may take to respond. The default is below the request timeout of Steadyscale, 10 s, and of
    the API server, 60 s."""

    on_empty: OnEmpty = OnEmpty.ERROR
    """What to do if no series matches. ``zero`` scales down whenever the series disappear, for whatever reason."""

    on_nan: OnUnusable = msgspec.field(default=OnUnusable.ERROR, name="onNaN")
    """What to do with a series that is NaN or infinite, for example a ratio with a denominator of zero."""

    on_out_of_range: OnUnusable = OnUnusable.ERROR
    """What to do with a series that is negative or too large for the arithmetic of an HPA."""

    on_too_old: OnTooOld = OnTooOld.ERROR
    """What to do with a series whose sample is older than ``maxSampleAge``."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    @property
    def tenant(self) -> str:
        """The namespace of the tenant that wrote the rule; empty: the cluster's operator wrote it."""
        return ""

    @property
    def namespacing(self) -> Namespacing:
        """Return how series are assigned to namespaces, with the default applied."""
        if self.namespace is not None:
            return self.namespace
        return Namespacing(label="namespace") if self.query else Namespacing()

    @property
    def is_static(self) -> bool:
        return not self.backend

    @property
    def is_template(self) -> bool:
        """Return whether the query depends on the selector, so that one snapshot cannot serve all selectors."""
        return bool(self.series) or "<<" in self.query

    def applies_to(self, namespace: str) -> bool:
        return not self.namespaces or namespace in self.namespaces


class TenantRule(Rule, frozen=True):
    """A rule of an ``ExternalMetric`` object. It can be read in the namespace of the object only."""

    restricted_by: str = ""
    """The label whose matcher restricts the query to series of the namespace; empty if the query is not restricted."""

    @property
    def tenant(self) -> str:
        return self.namespaces[0]

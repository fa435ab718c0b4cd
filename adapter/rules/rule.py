"""Rules: this metric, in these namespaces, is that query on that backend, and this is what to do when it has no number.

A policy may turn a number that is missing or unusable into zero or leave it out, if the rule says so. What a metric
system failed to tell is always an error: nothing is ever made up for it, and no old value is served in its place.
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

import msgspec

from autoscaler.types.record import Record

INDEX = "externalmetrics"
"""The one resource that discovery shows; reading it lists a namespace's metrics, so no metric can have that name."""

STATIC = "static"
"""The backend of fixed numbers; it is always there and needs no configuration."""


class Series(Record, frozen=True):
    """One fixed number of a static metric."""

    value: float
    """The number."""

    labels: Mapping[str, str] = {}
    """What a selector can choose it by."""

    age: timedelta = timedelta()
    """How old the number says it is; to rehearse what an old one does."""


class Namespacing(Record, frozen=True):
    """How a series belongs to a namespace. Nothing set: it belongs to all of them."""

    label: str = ""
    """The label that holds a series' namespace. Who asks in namespace ``shop`` is answered from ``shop``'s series."""

    fixed: str = ""
    """With ``label``: whoever asks is answered from this namespace's series; for what is shared."""


class Aggregation(StrEnum):
    """What becomes of several series that match."""

    SUM = "sum"
    """All are served, and an HPA adds them."""

    MAX = "max"
    MIN = "min"
    AVG = "avg"
    ONE = "one"
    """There must be exactly one; more are an error."""


class OnEmpty(StrEnum):
    """What it means that nothing matches."""

    ERROR = "error"
    ZERO = "zero"


class OnUnusable(StrEnum):
    """What becomes of a series with a number that cannot be served."""

    ERROR = "error"
    ZERO = "zero"
    SKIP = "skip"
    """The series is left out; if none is left, that is ``onEmpty``."""


class OnOld(StrEnum):
    """What becomes of a series whose number is too old. Never zero: that it was not heard of says nothing of it."""

    ERROR = "error"
    SKIP = "skip"


class Rule(Record, frozen=True):
    """What one metric is."""

    name: str
    """The name an HPA asks for, in any case."""

    static: tuple[Series, ...] = ()
    """Fixed numbers, one for each series, instead of a backend and a query."""

    namespaces: tuple[str, ...] = ()
    """Where it can be read; nowhere named means everywhere."""

    aliases: tuple[str, ...] = ()
    """Other names for the same."""

    backend: str = ""
    """Which of the configured backends to ask."""

    query: str = ""
    """What to ask it, in its own language, for all series at once. With ``<<.LabelMatchers>>`` in it the query is a
    template: it is asked anew for each selector, with the selector inside."""

    parameters: Mapping[str, object] = {}
    """What to ask it, where its questions have parts instead of a text."""

    series: str = ""
    """``<<.Series>>`` in a template that came from prometheus-adapter; set, it is filled just as it does."""

    namespace: Namespacing | None = None
    """How its series belong to namespaces. Left out: those of a query by the label ``namespace``; fixed numbers and
    what is asked with parameters belong to all."""

    labels: tuple[str, ...] = ()
    """The labels that a selector may use; none named means any."""

    aggregation: Aggregation = Aggregation.SUM
    """What becomes of several series that match."""

    interval: timedelta = timedelta(seconds=15)
    """How often the query is asked while anyone reads the metric; an HPA looks as often."""

    max_sample_age: timedelta = timedelta(minutes=5)
    """An older number is an error. An HPA never looks at the time, so nobody else would notice."""

    deadline: timedelta = timedelta(seconds=5)
    """How long the backend may take. The API server waits 60 s, our own limit is 10 s."""

    on_empty: OnEmpty = OnEmpty.ERROR
    """When nothing matches. ``zero`` scales down when the series disappear, for whatever reason."""

    on_nan: OnUnusable = msgspec.field(default=OnUnusable.ERROR, name="onNaN")
    """When a series is NaN or infinite; a ratio with nothing below the line is."""

    on_out_of_range: OnUnusable = OnUnusable.ERROR
    """When a series is negative or too large for an HPA's arithmetic."""

    on_too_old: OnOld = OnOld.ERROR
    """When a series is older than ``maxSampleAge``."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name it goes by, its own first."""
        return (self.name, *self.aliases)

    @property
    def namespacing(self) -> Namespacing:
        """How its series belong to namespaces, said or not."""
        if self.namespace is not None:
            return self.namespace
        return Namespacing(label="namespace") if self.query else Namespacing()

    @property
    def is_static(self) -> bool:
        """Whether its numbers are its own."""
        return not self.backend

    @property
    def is_template(self) -> bool:
        """Whether the query needs the selector inside, so that no snapshot can answer for all selectors."""
        return bool(self.series) or "<<" in self.query

    def covers(self, namespace: str) -> bool:
        """Say whether the metric can be read in this namespace."""
        return not self.namespaces or namespace in self.namespaces

"""What became of each metric's reads: since when it fails and how, and what it was when it last was well.

This is what someone looks at who wonders why a workload did not scale. Nothing here is ever served as a value.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cachetools import LRUCache

from adapter import errors
from adapter.sample import Sample
from autoscaler.types.observation import FailureClass
from autoscaler.values.selector import Selector

_MOST: Final = 20_000
_HEAVIEST: Final = 4096
"""Of a question that is remembered: a score of labels. People write lighter ones, and anyone can make them up."""


class Asked(NamedTuple):
    """What was asked for."""

    namespace: str
    metric: str
    selector: Selector

    @property
    def is_light(self) -> bool:
        """Say whether it is worth remembering."""
        return self.selector.weight + len(self.namespace) + len(self.metric) <= _HEAVIEST


@dataclass(slots=True)
class Read:
    """The reads of one metric with one selector in one namespace, so far."""

    reads: int = 0
    at: datetime | None = None
    """When it was last read."""

    query: str = ""
    """What was sent for it last."""

    took: timedelta = timedelta()
    """How long the backend took over that."""

    seen: int = 0
    """How many series that found."""

    chosen: int = 0
    """How many of them were for this reader."""

    failures: int = 0
    """How many reads in a row have failed; none: it is well."""

    first_failure_time: datetime | None = None
    """When the first of those was."""

    failure: FailureClass | None = None
    message: str = ""
    detail: str = ""
    good_milli: int | None = None
    """The number at the last read that was good, all series added, in thousandths."""

    good_at: datetime | None = None
    """When that read was."""

    def succeeded(self, samples: tuple[Sample, ...], now: datetime) -> None:
        """Note a good read: whatever was wrong is over."""
        self.reads += 1
        self.at = self.good_at = now
        self.good_milli = samples[0].milli if len(samples) == 1 else sum(sample.milli for sample in samples)
        if self.failures:
            self.failures = 0
            self.first_failure_time = self.failure = None
            self.message = self.detail = ""

    def failed(self, error: errors.AdapterError, now: datetime) -> None:
        """Note a bad read."""
        self.reads += 1
        self.failures += 1
        self.at = now
        if self.first_failure_time is None:
            self.first_failure_time = now
        self.failure, self.message = error.failure, error.message
        self.detail = error.detail if isinstance(error, errors.MetricUnavailable) else ""


class Reads:
    """All of them, as many as fit; those read longest ago are forgotten first."""

    def __init__(self, size: int = _MOST) -> None:
        self._reads: LRUCache[Asked, Read] = LRUCache(size)

    def of(self, asked: Asked) -> Read:
        """Find what is remembered of a metric, or begin to remember it, unless that would take too much."""
        if not asked.is_light:
            return Read()
        try:
            return self._reads[asked]
        except KeyError:
            read = self._reads[asked] = Read()
            return read

    def peek(self, asked: Asked) -> Read | None:
        """Find what is remembered, and begin nothing."""
        return self._reads.get(asked)

    def of_metric(self, metric: str) -> Iterator[tuple[Asked, Read]]:
        """Yield what is remembered of a rule's metric, in every namespace and with every selector."""
        yield from [(asked, read) for asked, read in self._reads.items() if asked.metric == metric]

    def __iter__(self) -> Iterator[tuple[Asked, Read]]:
        return iter(list(self._reads.items()))

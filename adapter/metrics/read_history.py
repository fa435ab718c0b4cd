"""The history of reads per metric, namespace and selector: last value, ``firstFailureTime`` and failure count.

It explains on debug endpoints why a workload did not scale. Nothing in it is served as a metric value.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final, NamedTuple

from adapter import errors
from adapter.metrics.namespace_cache import NamespaceCache
from adapter.sample import Sample
from autoscaler.types.observation import FailureClass
from autoscaler.values.selector import Selector

_MAX_BYTES: Final = 32 * 1024 * 1024
_BYTES_PER_RECORD: Final = 1024
_MAX_QUERY_LENGTH: Final = 1024
_MAX_KEY_WEIGHT: Final = 4096
"""About twenty labels. Callers can make up any namespace, name and selector; larger keys are not stored."""


class ReadKey(NamedTuple):
    """The namespace, metric and selector of a read."""

    namespace: str
    metric: str
    selector: Selector

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return self.selector.weight + len(self.namespace) + len(self.metric)

    @property
    def is_cacheable(self) -> bool:
        return self.size <= _MAX_KEY_WEIGHT


@dataclass(slots=True)
class ReadRecord:
    """The reads with one key so far."""

    reads: int = 0
    last_read_time: datetime | None = None
    query: str = ""
    """The query of the last read, or its beginning."""

    fetch_duration: timedelta = timedelta()
    series_found: int = 0
    series_matched: int = 0
    failures: int = 0
    """Consecutive failed reads up to now."""

    first_failure_time: datetime | None = None
    """Time of the first of these failures."""

    failure: FailureClass | None = None
    message: str = ""
    detail: str = ""
    last_good_milli: int | None = None
    """Sum of all series at the last successful read, in thousandths."""

    last_good_time: datetime | None = None

    def record_query(self, text: str) -> None:
        self.query = text[:_MAX_QUERY_LENGTH]

    def record_success(self, samples: tuple[Sample, ...], now: datetime) -> None:
        self.reads += 1
        self.last_read_time = self.last_good_time = now
        self.last_good_milli = samples[0].milli if len(samples) == 1 else sum(sample.milli for sample in samples)
        if self.failures:
            self.failures = 0
            self.first_failure_time = self.failure = None
            self.message = self.detail = ""

    def record_failure(self, error: errors.AdapterError, now: datetime) -> None:
        self.reads += 1
        self.failures += 1
        self.last_read_time = now
        if self.first_failure_time is None:
            self.first_failure_time = now
        self.failure, self.message = error.failure, error.message
        self.detail = error.detail if isinstance(error, errors.MetricUnavailable) else ""


class ReadHistory:
    """Records by key; the least recently used of the namespace with the most records are evicted."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._records: NamespaceCache[ReadKey, ReadRecord] = NamespaceCache(
            max_bytes, attrgetter("namespace"), lambda key, _record: _BYTES_PER_RECORD + _MAX_QUERY_LENGTH + key.size
        )

    def record(self, key: ReadKey) -> ReadRecord:
        """Return the record of a key, a new one if there is none; the record of a large key is not stored."""
        try:
            return self._records[key]
        except KeyError:
            record = ReadRecord()
            if key.is_cacheable:
                self._records[key] = record
            return record

    def peek(self, key: ReadKey) -> ReadRecord | None:
        return self._records.get(key)

    def __iter__(self) -> Iterator[tuple[ReadKey, ReadRecord]]:
        return iter(self._records.entries())

"""Cached rule, query and last evaluation of each read.

Autoscalers repeat the same reads. While the rules of its namespace are the same, a repeated read needs no rule lookup;
while the snapshot is the same and no sample has become too old, it needs no evaluation. Callers can make up names and
selectors, so the size of the entries is bounded, and reads in one namespace do not evict the entries of another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Final, NamedTuple
from weakref import ReferenceType, ref

from adapter.metrics.namespace_cache import NamespaceCache
from adapter.metrics.read_history import ReadKey
from adapter.metrics.snapshot import Snapshot
from adapter.rules.query_builder import Query
from adapter.rules.rule import Rule
from adapter.sample import RawSample, Sample

_MAX_BYTES: Final = 32 * 1024 * 1024
_BYTES_PER_ENTRY: Final = 1024
_MAX_SERIES: Final = 8
"""Evaluations of more series are not cached, to bound the memory; most reads match one series."""


class Evaluation(NamedTuple):
    """The result of evaluating a rule on a snapshot for one read."""

    snapshot: "ReferenceType[Snapshot]"
    """Weak, so that the cache does not keep old snapshots in memory."""

    oldest_sample: datetime
    matched: Sequence[RawSample]
    samples: tuple[Sample, ...]


@dataclass(slots=True)
class ResolvedRead:
    """The rule and the query of a read, with its last evaluation."""

    key: ReadKey
    rule: Rule
    query: Query
    last: Evaluation | None = None

    def cached_evaluation(self, snapshot: Snapshot, now: datetime) -> Evaluation | None:
        """Return the last evaluation if it is still valid, or None."""
        last = self.last
        if last is None or last.snapshot() is not snapshot or last.oldest_sample < now - self.rule.max_sample_age:
            return None
        return last

    def store(
        self, snapshot: Snapshot, matched: Sequence[RawSample], samples: tuple[Sample, ...], now: datetime
    ) -> None:
        if len(matched) > _MAX_SERIES or samples == (Sample(0, now),):
            return  # the zero of onEmpty: its timestamp is the time of the read
        too_old = now - self.rule.max_sample_age
        self.last = Evaluation(ref(snapshot), min(raw.at for raw in matched if raw.at >= too_old), matched, samples)


class EvaluationCache:
    """Resolved reads, by requested key: an alias and a name in another case have their own entries."""

    def __init__(self) -> None:
        self._reads: NamespaceCache[ReadKey, tuple[int, ResolvedRead]] = NamespaceCache(
            _MAX_BYTES, attrgetter("namespace"), _size
        )

    def get(self, version: int, requested: ReadKey) -> ResolvedRead | None:
        """Return the resolved read; None if there is none with this version of the rules of the namespace."""
        try:
            stored, resolved = self._reads[requested]
        except KeyError:
            return None
        return resolved if stored == version else None

    def add(self, version: int, requested: ReadKey, resolved: ResolvedRead) -> ResolvedRead:
        """Store a resolved read, unless its key is large; return it."""
        if requested.is_cacheable:
            self._reads[requested] = version, resolved
        return resolved

    def __len__(self) -> int:
        return len(self._reads)


def _size(requested: ReadKey, entry: tuple[int, ResolvedRead]) -> int:
    return _BYTES_PER_ENTRY + requested.size + len(entry[1].query.text)

"""Which autoscalers read which external metric, and which of them a changed series concerns.

A selector is indexed by one of the label values that it requires: the one that the fewest selectors share. A changed
series is then compared with the selectors that require a value it has, and with those that require no value.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Final, NamedTuple

from autoscaler.ports import MetricChange
from autoscaler.values.requirement import Labels
from autoscaler.values.selector import Selector

_SHARE_OF_PERIOD: Final = 5
_MAX_SPACING: Final = timedelta(milliseconds=2)


class _Read(NamedTuple):
    """One read of a metric by one autoscaler."""

    key: str
    selector: Selector


class _Label(NamedTuple):
    """A label value that a selector requires."""

    name: str
    value: str


class _Readers:
    """The autoscalers that read one metric."""

    def __init__(self) -> None:
        self.reads: dict[str, dict[_Read, _Label | None]] = {}
        """By namespace, the reads with the label that they are indexed by; None if they require no value."""

        self._by_label: dict[str, dict[str, dict[str, dict[_Read, None]]]] = {}
        """By name and value of a label, and by namespace."""

        self._without_label: dict[str, dict[_Read, None]] = {}
        """By namespace."""

    def add(self, namespace: str, read: _Read) -> None:
        exact = ((requirement.key, requirement.exact_value()) for requirement in read.selector.requirements)
        labels = [_Label(name, value) for name, value in exact if value is not None]
        best = min(labels, key=lambda label: len(self._indexed(namespace, label)), default=None)
        self.reads.setdefault(namespace, {})[read] = best
        by_namespace = self._without_label
        if best is not None:
            by_namespace = self._by_label.setdefault(best.name, {}).setdefault(best.value, {})
        by_namespace.setdefault(namespace, {})[read] = None

    def remove(self, namespace: str, read: _Read) -> None:
        label = self.reads[namespace].pop(read)
        if not self.reads[namespace]:
            del self.reads[namespace]
        if label is None:
            _remove(self._without_label, namespace, read)
            return
        values = self._by_label[label.name]
        _remove(values[label.value], namespace, read)
        if not values[label.value]:
            del values[label.value]
        if not values:
            del self._by_label[label.name]

    def all(self, namespace: str | None) -> Iterator[str]:
        for reads in _of_namespace(self.reads, namespace):
            yield from (read.key for read in reads)

    def matching(self, series: Collection[Labels], namespace: str | None) -> Iterator[str]:
        """Yield the autoscalers whose selectors match one of the series, some of them several times."""
        for labels in series:
            for name in self._by_label if len(self._by_label) < len(labels) else labels:
                by_namespace = self._by_label.get(name, {}).get(labels.get(name, ""), {})
                for reads in _of_namespace(by_namespace, namespace):
                    yield from (read.key for read in reads if read.selector.matches(labels))
        for reads in _of_namespace(self._without_label, namespace):
            yield from (read.key for read in reads if any(map(read.selector.matches, series)))

    def _indexed(self, namespace: str, label: _Label) -> Collection[_Read]:
        return self._by_label.get(label.name, {}).get(label.value, {}).get(namespace, ())


class MetricReaders:
    """The reads of all autoscalers, by metric. Case is ignored in the names of metrics."""

    def __init__(self) -> None:
        self._metrics: dict[str, _Readers] = {}

    def add(self, metric: str, key: str, selector: Selector) -> None:
        self._metrics.setdefault(metric.lower(), _Readers()).add(_namespace(key), _Read(key, selector))

    def remove(self, metric: str, key: str, selector: Selector) -> None:
        """Remove a read that was added."""
        readers = self._metrics[metric.lower()]
        readers.remove(_namespace(key), _Read(key, selector))
        if not readers.reads:
            del self._metrics[metric.lower()]

    def concerned(self, change: MetricChange) -> dict[str, None]:
        """Return the keys of the autoscalers that a change may concern, in a stable order."""
        readers = self._metrics.get(change.metric.lower())
        if readers is None:
            return {}
        if change.series is None:
            return dict.fromkeys(readers.all(change.namespace))
        return dict.fromkeys(readers.matching(change.series, change.namespace))


def spread(keys: Collection[str], sync_period: timedelta) -> Iterator[tuple[str, timedelta]]:
    """Yield the keys with a delay for each: reconciles of many autoscalers at once would delay all others.

    A few follow each other closely; many are spread over a fifth of the sync period.
    """
    spacing = min(_MAX_SPACING, sync_period / _SHARE_OF_PERIOD / max(len(keys), 1))
    for index, key in enumerate(keys):
        yield key, spacing * index


def _of_namespace(
    by_namespace: Mapping[str, Mapping[_Read, object]], namespace: str | None
) -> Iterable[Mapping[_Read, object]]:
    """Return the reads of one namespace, or of each of them."""
    if namespace is None:
        return by_namespace.values()
    return (by_namespace[namespace],) if namespace in by_namespace else ()


def _remove(by_namespace: dict[str, dict[_Read, None]], namespace: str, read: _Read) -> None:
    del by_namespace[namespace][read]
    if not by_namespace[namespace]:
        del by_namespace[namespace]


def _namespace(key: str) -> str:
    return key.partition("/")[0]

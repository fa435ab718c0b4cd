"""External metrics for the controller in the same process: the rules and snapshots of the served API, without requests.

Error messages equal those that the controller would get through the API, so that conditions read the same either way.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence

from adapter.label_sets import Labels
from adapter.metrics.reader import MetricReader, ReadTrace
from adapter.metrics.snapshot import ChangedLabels
from adapter.rules.rule import Rule
from autoscaler.ports import MetricChange, Unsubscribe
from autoscaler.readings import MetricsApi, api_failure, read_external
from autoscaler.types.observation import ExternalReading, FailureClass, UnavailableReading
from autoscaler.values.selector import Selector


class InProcessMetrics:
    """Implements ``autoscaler.ports.ExternalMetricsSource`` on a ``MetricReader``."""

    def __init__(self, reader: MetricReader) -> None:
        self._reader = reader
        self._listeners: list[Callable[[Sequence[MetricChange]], None]] = []
        reader.registry.add_listener(self._on_rules_changed)
        reader.sources.snapshots.add_listener(self._on_values_changed)

    def read_now(self, namespace: str, metric: str, selector: Selector) -> ExternalReading | UnavailableReading | None:
        """Return the current value; None if it has to be fetched from the backend."""
        trace = self._reader.read_now(namespace, metric, selector)
        return None if trace is None else _reading(trace)

    async def read(self, namespace: str, metric: str, selector: Selector) -> ExternalReading | UnavailableReading:
        return _reading(await self._reader.read(namespace, metric, selector))

    def subscribe(self, changed: Callable[[Sequence[MetricChange]], None]) -> Unsubscribe:
        """Call ``changed`` whenever the values of metrics may have changed."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def _on_rules_changed(self, rules: tuple[Rule, ...]) -> None:
        self._notify(rules, None)

    def _on_values_changed(self, query_key: Hashable, changed: ChangedLabels) -> None:
        self._notify(self._reader.registry.rules_for_query(query_key), changed)

    def _notify(self, rules: tuple[Rule, ...], changed: ChangedLabels) -> None:
        changes = [
            MetricChange(name, namespace, series)
            for rule in rules
            for namespace, series in _by_namespace(rule, changed)
            for name in rule.names
        ]
        for listener in tuple(self._listeners) if changes else ():
            listener(changes)


def _reading(trace: ReadTrace) -> ExternalReading | UnavailableReading:
    if trace.error is not None:
        failure = trace.error.failure or FailureClass.API_UNAVAILABLE
        return api_failure(MetricsApi.EXTERNAL, trace.error.message, failure)
    return read_external((sample.milli for sample in trace.samples), trace.samples[0].at)


def _by_namespace(rule: Rule, changed: ChangedLabels) -> Iterator[tuple[str | None, ChangedLabels]]:
    """Yield the namespaces in which a metric may have changed, with the changed series; None stands for all."""
    label, fixed = rule.namespacing.label, rule.namespacing.fixed
    if changed is None or not label or fixed:
        if changed is not None and fixed:
            changed = tuple(labels for labels in changed if labels.get(label) == fixed)
        if changed != ():
            yield from ((namespace, changed) for namespace in rule.namespaces or (None,))
        return
    by_namespace: dict[str, list[Labels]] = {}
    for labels in changed:
        if label in labels:
            by_namespace.setdefault(labels[label], []).append(labels)
    for namespace, series in by_namespace.items():
        if rule.applies_to(namespace):
            yield namespace, tuple(series)

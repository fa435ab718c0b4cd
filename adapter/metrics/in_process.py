"""External metrics for the controller in the same process: the rules and snapshots of the served API, without requests.

Error messages equal those that the controller would get through the API, so that conditions read the same either way.
"""

from collections.abc import Callable, Hashable

from adapter.metrics.reader import MetricReader
from adapter.metrics.snapshots import ChangedSeries
from adapter.rules.rule import Rule
from autoscaler.ports import MetricChange, Unsubscribe
from autoscaler.readings import MetricsApi, api_failure, read_external
from autoscaler.types.observation import ExternalReading, FailureClass, UnavailableReading
from autoscaler.values.selector import Selector


class InProcessMetrics:
    """Implements ``autoscaler.ports.ExternalMetricsSource`` on a ``MetricReader``."""

    def __init__(self, reader: MetricReader) -> None:
        self._reader = reader
        self._listeners: list[Callable[[MetricChange], None]] = []
        reader.registry.add_listener(self._on_rules_changed)
        reader.sources.snapshots.add_listener(self._on_values_changed)

    async def read(self, namespace: str, metric: str, selector: Selector) -> ExternalReading | UnavailableReading:
        trace = await self._reader.read(namespace, metric, selector)
        if trace.error is not None:
            failure = trace.error.failure or FailureClass.API_UNAVAILABLE
            return api_failure(MetricsApi.EXTERNAL, trace.error.message, failure)
        return read_external((sample.milli for sample in trace.samples), trace.samples[0].at)

    def subscribe(self, changed: Callable[[MetricChange], None]) -> Unsubscribe:
        """Call ``changed`` whenever the value of a metric may have changed."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def _on_rules_changed(self, rules: tuple[Rule, ...]) -> None:
        for rule in rules:
            self._notify(rule, rule.namespaces or (None,))

    def _on_values_changed(self, query_key: Hashable, changed: ChangedSeries) -> None:
        for rule in self._reader.registry.rules_for_query(query_key):
            self._notify(rule, _affected_namespaces(rule, changed))

    def _notify(self, rule: Rule, namespaces: tuple[str | None, ...]) -> None:
        for namespace in namespaces:
            for name in rule.names:
                for listener in tuple(self._listeners):
                    listener(MetricChange(name, namespace))


def _affected_namespaces(rule: Rule, changed: ChangedSeries) -> tuple[str | None, ...]:
    """Return the namespaces in which a metric may have changed, from the labels of the series; None stands for all."""
    label = rule.namespacing.label
    if changed is None or not label or rule.namespacing.fixed:
        return rule.namespaces or (None,)
    namespaces = {series.labels[label] for series in changed if label in series.labels}
    return tuple(sorted(namespace for namespace in namespaces if rule.applies_to(namespace)))

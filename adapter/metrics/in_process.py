"""The controller's door to external metrics: the same rules and the same snapshots as the served API, and no request.

It says what the controller would have heard through the API, word for word, so that a condition reads the same either
way.
"""

from collections.abc import Callable, Hashable

from adapter.metrics.reader import RuleReader
from adapter.metrics.snapshots import Difference
from adapter.rules.rule import Rule
from autoscaler.ports import MetricChange, Unsubscribe
from autoscaler.readings import MetricsApi, api_failure, read_external
from autoscaler.types.observation import ExternalReading, FailureClass, UnavailableReading
from autoscaler.values.selector import Selector


class InProcessMetrics:
    """External metrics for a controller in this process; has the shape of ``autoscaler.ports.ExternalMetrics``."""

    def __init__(self, reader: RuleReader) -> None:
        self._reader = reader
        self._listeners: list[Callable[[MetricChange], None]] = []
        reader.book.add_listener(self._rules_changed)
        reader.sources.snapshots.tell(self._values_changed)

    async def read(self, namespace: str, metric: str, selector: Selector) -> ExternalReading | UnavailableReading:
        """Say what the metric is now, or why that cannot be told."""
        look = await self._reader.look(namespace, metric, selector)
        if look.error is not None:
            failure = look.error.failure or FailureClass.API_UNAVAILABLE
            return failed(MetricsApi.EXTERNAL, look.error.message, failure)
        return read_external((sample.milli for sample in look.samples), look.samples[0].at)

    def subscribe(self, changed: Callable[[MetricChange], None]) -> Unsubscribe:
        """Call ``changed`` whenever a metric may read differently."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def _rules_changed(self, rules: tuple[Rule, ...]) -> None:
        for rule in rules:
            self._announce(rule, rule.namespaces or (None,))

    def _values_changed(self, key: Hashable, difference: Difference) -> None:
        for rule in self._reader.book.rules_for_query(key):
            self._announce(rule, _where(rule, difference))

    def _announce(self, rule: Rule, namespaces: tuple[str | None, ...]) -> None:
        for namespace in namespaces:
            for name in rule.names:
                for listener in tuple(self._listeners):
                    listener(MetricChange(name, namespace))


def _where(rule: Rule, difference: Difference) -> tuple[str | None, ...]:
    """Say in which namespaces a rule's metric reads differently: only where series changed, if series say where."""
    belongs = rule.namespacing
    if difference is None or not belongs.label or belongs.fixed:
        return rule.namespaces or (None,)
    changed = {row.labels.get(belongs.label) for row in difference} - {None}
    return tuple(sorted(namespace for namespace in changed if namespace is not None and rule.applies_to(namespace)))

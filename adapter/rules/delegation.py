"""Delegation of metrics to another external metrics server."""

from datetime import timedelta

from adapter.rules.rule import DEFAULT_INTERVAL, Rule
from autoscaler.types.record import Record
from autoscaler.values.selector import Selector


class Delegate(Record, frozen=True):
    """Another external metrics server, queried for metrics without a rule or for comparison."""

    backend: str
    """Name of the backend that represents the other server. Its kind must be ``upstream``."""

    unknown_metrics: bool = True
    """Forward metrics that have no rule. The other server is queried with the credentials of the backend, so every
    caller that may read a metric here can read it there."""

    compare: bool = False
    """Also query the other server for metrics that have a rule, and report where the values differ. Use it to verify
    a migration. Values of the other server are only compared, never served."""

    tolerance: float = 0.1
    """Relative difference below which two values count as equal. The two servers read at different times; the default
    equals the default tolerance of an HPA."""

    interval: timedelta = DEFAULT_INTERVAL
    """How long a response is cached, per metric, namespace and selector. The default equals the sync period of an
    HPA."""

    max_sample_age: timedelta = timedelta(minutes=5)
    """Maximum age of a sample; an older sample is an error."""

    deadline: timedelta = timedelta(seconds=5)
    """How long the other server may take to respond."""


class DelegatedRule(Rule, frozen=True):
    """A rule for one read from a delegate. The delegate evaluates the selector itself."""

    @property
    def is_template(self) -> bool:
        """Return True: the response is valid for one selector only."""
        return True


def delegated_rule(delegate: Delegate, namespace: str, metric: str, selector: Selector) -> DelegatedRule:
    return DelegatedRule(
        name=metric,
        backend=delegate.backend,
        parameters={"namespace": namespace, "metric": metric, "selector": str(selector)},
        interval=delegate.interval,
        max_sample_age=delegate.max_sample_age,
        deadline=delegate.deadline,
    )

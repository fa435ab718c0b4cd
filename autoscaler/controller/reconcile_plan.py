"""What a spec asks to be looked at, worked out once for each version of it: every pass goes by the same plan."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.observation import BadSelector
from autoscaler.types.record import Record
from autoscaler.types.spec import (
    CONTAINER_RESOURCE,
    EXTERNAL,
    OBJECT,
    PODS,
    RESOURCE,
    VALUE,
    Metric,
    MetricIdentifier,
    Spec,
)
from autoscaler.validation import problems
from autoscaler.values.selector import LabelSelector, Selector, SelectorError, from_label_selector


class ExternalRead(Record):
    """Ask for an external metric."""

    asked: MetricIdentifier
    selector: Selector

    @property
    def metric(self) -> str:
        """The metric's name."""
        return self.asked.name


class ClusterRead(Record):
    """Ask the cluster for a metric of pods or of an object."""

    metric: Metric


Read: TypeAlias = ExternalRead | ClusterRead | BadSelector
"""What to ask for; where nothing can be asked, the answer that this amounts to."""


class Plan(Record):
    """What one version of a spec asks for."""

    uid: str
    generation: int
    spec: Spec
    """With its defaults."""

    problems: tuple[str, ...]
    reads: tuple[Read, ...]
    """One for each metric, in their order."""

    needs_pods: bool

    def is_of(self, autoscaler: Autoscaler) -> bool:
        """Tell whether it was made of this version of this object."""
        return self.generation == autoscaler.metadata.generation and self.uid == autoscaler.metadata.uid

    def external_metrics(self) -> frozenset[str]:
        """Name the external metrics that are asked for."""
        return frozenset(read.metric for read in self.reads if isinstance(read, ExternalRead))


def make_plan(autoscaler: Autoscaler, settings: Settings, gates: FeatureGates) -> Plan:
    """Work out what an autoscaler asks for."""
    spec = with_defaults(autoscaler.spec)
    wrong = problems(Autoscaler(autoscaler.metadata, spec), gates=gates, settings=settings)
    metrics = spec.metrics or ()
    return Plan(
        uid=autoscaler.metadata.uid,
        generation=autoscaler.metadata.generation,
        spec=spec,
        problems=tuple(dict.fromkeys(map(str, wrong))),
        reads=tuple(map(_read, metrics)),
        needs_pods=any(map(_needs_pods, metrics)),
    )


def _read(metric: Metric) -> Read:
    if metric.type != EXTERNAL or metric.external is None:
        return ClusterRead(metric)
    asked = metric.external.metric
    try:
        return ExternalRead(asked, _selector(asked.selector))
    except SelectorError as error:
        return BadSelector(str(error))


def _selector(selector: LabelSelector | None) -> Selector:
    """Read a metric's selector; none at all is sent as an empty one, and so asks for every series."""
    return Selector() if selector is None else from_label_selector(selector)


def _needs_pods(metric: Metric) -> bool:
    """Tell whether the arithmetic looks at pods: a total is compared with how many of them are ready."""
    if metric.type == EXTERNAL and metric.external is not None:
        return metric.external.target.average_value is None
    if metric.type == OBJECT and metric.object is not None:
        return metric.object.target.type == VALUE
    return metric.type in _OF_PODS


_OF_PODS: Final = frozenset({RESOURCE, CONTAINER_RESOURCE, PODS})


class Plans:
    """The plan of every autoscaler, and which of them ask for a metric."""

    def __init__(self, settings: Settings, gates: FeatureGates) -> None:
        self._settings = settings
        self._gates = gates
        self._plans: dict[str, Plan] = {}
        self._readers: dict[str, dict[str, None]] = {}

    def of(self, key: str, autoscaler: Autoscaler) -> Plan:
        """Give the plan, made anew if the spec has changed."""
        plan = self._plans.get(key)
        if plan is None or not plan.is_of(autoscaler):
            self.forget(key)
            plan = self._plans[key] = make_plan(autoscaler, self._settings, self._gates)
            for metric in plan.external_metrics():
                self._readers.setdefault(metric, {})[key] = None
        return plan

    def knows(self, key: str, autoscaler: Autoscaler) -> bool:
        """Tell whether this version of the spec was seen before."""
        plan = self._plans.get(key)
        return plan is not None and plan.is_of(autoscaler)

    def readers(self, metric: str, namespace: str | None) -> tuple[str, ...]:
        """Name the autoscalers that ask for an external metric, in one namespace or in all."""
        keys: Mapping[str, None] = self._readers.get(metric, {})
        return tuple(key for key in keys if namespace is None or key.startswith(f"{namespace}/"))

    def forget(self, key: str) -> None:
        """Forget an autoscaler that is gone, or no longer what it was."""
        plan = self._plans.pop(key, None)
        for metric in plan.external_metrics() if plan is not None else ():
            readers = self._readers[metric]
            del readers[key]
            if not readers:
                del self._readers[metric]

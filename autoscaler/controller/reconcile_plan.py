"""Reconcile plans: the defaulted spec, its problems and its metric reads, computed once per generation of a spec."""

from typing import TypeAlias

from autoscaler.algorithm.pause import annotation_of
from autoscaler.controller.metric_readers import MetricReaders
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
from autoscaler.validation import stored_problems
from autoscaler.values.selector import LabelSelector, Selector, SelectorError, from_label_selector


class ExternalMetricRead(Record):
    """Read an external metric."""

    identifier: MetricIdentifier
    selector: Selector


class ClusterMetricRead(Record):
    """Read a metric of pods or of an object from the cluster's metrics APIs."""

    metric: Metric


MetricRead: TypeAlias = ExternalMetricRead | ClusterMetricRead | BadSelector
"""How to read a metric; a metric with an invalid selector is not read."""


class ReconcilePlan(Record):
    """What a reconcile of one generation of a spec needs."""

    uid: str
    generation: int
    spec: Spec
    """The spec with defaults."""

    problems: tuple[str, ...]
    reads: tuple[MetricRead, ...]
    """One read per metric, in the order of spec.metrics."""

    needs_pods: bool
    pause: str | None
    """The annotation that pauses the autoscaler, which a new generation does not reflect."""

    def is_current(self, autoscaler: Autoscaler) -> bool:
        """Return whether the plan is for this generation of this object and for its annotation."""
        metadata = autoscaler.metadata
        is_same = self.generation == metadata.generation and self.uid == metadata.uid
        return is_same and self.pause == annotation_of(metadata)

    def external_reads(self) -> frozenset[tuple[str, Selector]]:
        """Return the names and selectors of the external metrics that are read."""
        external = (read for read in self.reads if isinstance(read, ExternalMetricRead))
        return frozenset((read.identifier.name.lower(), read.selector) for read in external)


def make_plan(autoscaler: Autoscaler, settings: Settings, gates: FeatureGates) -> ReconcilePlan:
    spec = with_defaults(autoscaler.spec)
    spec_problems = stored_problems(Autoscaler(autoscaler.metadata, spec), gates=gates, settings=settings)
    metrics = spec.metrics or ()
    return ReconcilePlan(
        uid=autoscaler.metadata.uid,
        generation=autoscaler.metadata.generation,
        spec=spec,
        problems=tuple(dict.fromkeys(map(str, spec_problems))),
        reads=tuple(map(_read, metrics)),
        needs_pods=any(map(_needs_pods, metrics)),
        pause=annotation_of(autoscaler.metadata),
    )


def _read(metric: Metric) -> MetricRead:
    if metric.type != EXTERNAL or metric.external is None:
        return ClusterMetricRead(metric)
    identifier = metric.external.metric
    try:
        # An absent selector selects all series, as in upstream's request; from_label_selector(None) selects none.
        return ExternalMetricRead(identifier, from_label_selector(identifier.selector or LabelSelector()))
    except SelectorError as error:
        return BadSelector(str(error))


def _needs_pods(metric: Metric) -> bool:
    """Return whether the calculation needs pods, for their samples or to count the ready ones."""
    if metric.type == EXTERNAL and metric.external is not None:
        return metric.external.target.average_value is None
    if metric.type == OBJECT and metric.object is not None:
        return metric.object.target.type == VALUE
    return metric.type in {RESOURCE, CONTAINER_RESOURCE, PODS}


class ReconcilePlans:
    """The plans of all autoscalers, with an index by external metric."""

    def __init__(self, settings: Settings, gates: FeatureGates) -> None:
        self._settings = settings
        self._gates = gates
        self._plans: dict[str, ReconcilePlan] = {}
        self.readers = MetricReaders()

    def get(self, key: str, autoscaler: Autoscaler) -> ReconcilePlan:
        """Return the plan of an autoscaler; create it if the spec has changed."""
        plan = self._plans.get(key)
        if plan is None or not plan.is_current(autoscaler):
            self.remove(key)
            plan = self._plans[key] = make_plan(autoscaler, self._settings, self._gates)
            for metric, selector in plan.external_reads():
                self.readers.add(metric, key, selector)
        return plan

    def is_current(self, key: str, autoscaler: Autoscaler) -> bool:
        """Return whether there is a plan for this generation of the spec."""
        plan = self._plans.get(key)
        return plan is not None and plan.is_current(autoscaler)

    def remove(self, key: str) -> None:
        plan = self._plans.pop(key, None)
        for metric, selector in plan.external_reads() if plan is not None else ():
            self.readers.remove(metric, key, selector)

"""Fallback of external metrics (KEP-5679): a fixed replica count replaces a metric that has failed for too long.

The run of failures of each metric is stored in the status. It starts with the first failed read, ends with the first
successful one, and is preserved by reconciles that read no metric. It is identified by the metric's name and selector,
not by its index in the spec.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from msgspec.structs import replace

from autoscaler.algorithm import conditions
from autoscaler.algorithm.conditions import ConditionUpdate
from autoscaler.algorithm.formatting import failure_cause
from autoscaler.algorithm.metric_context import MetricContext
from autoscaler.defaults import FAILURE_DURATION_SECONDS
from autoscaler.settings import FeatureGates
from autoscaler.types.decision import Event
from autoscaler.types.metric_result import (
    EffectiveResult,
    FallbackProposal,
    MetricResult,
    UnavailableCause,
    UnavailableMetric,
)
from autoscaler.types.record import Record
from autoscaler.types.spec import EXTERNAL, STATIC, USE_MAX, USE_MIN, ExternalSource, Fallback, MetricIdentifier, Spec
from autoscaler.types.status import FALLBACK, NORMAL, ExternalMetricStatus, MetricStatus, MetricValue, Status
from autoscaler.types.steps import MetricFallbackStep, MetricUnavailableStep, Step
from autoscaler.values.selector import SelectorError, from_label_selector, go_syntax
from autoscaler.values.timestamps import add_seconds

NO_VALUE = MetricValue()
_MAX_MESSAGE_LENGTH = 256
"""Of the failure message in the status; the event has all of it."""

MetricKey: TypeAlias = tuple[str, str]
"""Name and selector of a metric."""


class FailureRun(Record):
    """Consecutive failed reads of a metric: their start and, in fallback, the proposed and the captured replicas."""

    metric: MetricIdentifier
    since: datetime
    replicas: int | None = None
    captured: int | None = None
    message: str | None = None
    """Why the last read failed."""

    @property
    def is_in_fallback(self) -> bool:
        return self.replicas is not None

    def to_status(self, current: MetricValue = NO_VALUE) -> MetricStatus:
        """Return the entry of ``status.currentMetrics``."""
        state = FALLBACK if self.is_in_fallback else NORMAL
        entry = ExternalMetricStatus(
            self.metric, current, state, self.since, self.replicas, self.captured, self.message
        )
        return MetricStatus(type=EXTERNAL, external=entry)


FailureRuns: TypeAlias = Mapping[MetricKey, FailureRun]


class FallbackEvaluation(Record):
    """The result of a metric after its fallback was considered, with the step and events that this added."""

    result: EffectiveResult
    step: Step | None = None
    events: tuple[Event, ...] = ()


def metric_key(metric: MetricIdentifier) -> MetricKey:
    """Return the identity of a metric; selectors with the same meaning are equal."""
    if metric.selector is None:
        return metric.name, ""
    try:
        return metric.name, str(from_label_selector(metric.selector))
    except SelectorError:
        return metric.name, go_syntax(metric.selector)


def sources_with_fallback(spec: Spec) -> tuple[ExternalSource, ...]:
    """Return the sources of the external metrics that have a fallback."""
    return tuple(
        metric.external
        for metric in spec.metrics or ()
        if metric.type == EXTERNAL and metric.external is not None and metric.external.fallback is not None
    )


def failure_runs_of(status: Status) -> FailureRuns:
    """Read the failure runs from a status; of two entries for one metric the earlier start counts."""
    runs: dict[MetricKey, FailureRun] = {}
    for metric_status in status.current_metrics or ():
        entry = metric_status.external
        if entry is not None and entry.first_failure_time is not None:
            replicas = entry.fallback_replicas if entry.fallback_status == FALLBACK else None
            run = FailureRun(
                entry.metric, entry.first_failure_time, replicas, entry.captured_replicas, entry.failure_message
            )
            key = metric_key(entry.metric)
            runs[key] = _merged(runs.get(key, run), run)
    return runs


def _merged(first: FailureRun, second: FailureRun) -> FailureRun:
    base = first if first.is_in_fallback else second
    return replace(base, since=min(first.since, second.since))


def active_runs(status: Status, gates: FeatureGates) -> FailureRuns:
    """Read the failure runs; when the feature gate is switched on again, ignore those from before it was off."""
    condition = status.condition(conditions.FALLBACK_ACTIVE)
    was_off = condition is not None and condition.reason == conditions.FEATURE_DISABLED
    return {} if was_off and gates.HPAExternalMetricFallback else failure_runs_of(status)


def preserved_runs(spec: Spec, runs: FailureRuns) -> tuple[MetricStatus, ...] | None:
    """Return the status entries that preserve the failure runs in a reconcile that reads no metric."""
    keys = {metric_key(source.metric) for source in sources_with_fallback(spec)}
    return tuple(run.to_status() for key, run in runs.items() if key in keys) or None


def preserved_metrics(status: Status, runs: FailureRuns) -> tuple[MetricStatus, ...] | None:
    """Return the metrics of the status unchanged, unless they contain outdated failure runs (see ``active_runs``)."""
    return status.current_metrics if runs or not failure_runs_of(status) else None


def keep_failure_run(result: MetricResult, run: FailureRun | None) -> MetricResult:
    """Return the result with the stored failure run in its status; used while the feature gate is off."""
    if run is None:
        return result
    entry = result.status.external
    return replace(result, status=run.to_status() if entry is None else run.to_status(entry.current))


def apply_fallback(
    source: ExternalSource, result: MetricResult, run: FailureRun | None, context: MetricContext
) -> FallbackEvaluation:
    """Start, continue or end the failure run of a metric, and replace its result if the fallback is active."""
    if isinstance(result, UnavailableMetric) and result.cause is UnavailableCause.RETRIEVAL:
        return _failed_read(source, result, run, context)
    if isinstance(result, UnavailableMetric) and result.cause is UnavailableCause.SPEC:
        return FallbackEvaluation(result if run is None else replace(result, status=run.to_status()))
    return _successful_read(source, result, run, context.now)


def _successful_read(
    source: ExternalSource, result: MetricResult, run: FailureRun | None, now: datetime
) -> FallbackEvaluation:
    """End the failure run, with an event if the fallback was active."""
    entry = result.status.external or ExternalMetricStatus(source.metric, NO_VALUE)
    result = replace(result, status=MetricStatus(type=EXTERNAL, external=replace(entry, fallback_status=NORMAL)))
    if run is None or not run.is_in_fallback:
        return FallbackEvaluation(result)
    return FallbackEvaluation(result, events=(conditions.fallback_deactivated(str(run.metric), now - run.since),))


def _failed_read(
    source: ExternalSource, result: UnavailableMetric, before: FailureRun | None, context: MetricContext
) -> FallbackEvaluation:
    """Start or continue the failure run. Events are sent only at its start and at the activation of the fallback."""
    fallback = source.fallback or Fallback()
    second = context.now.replace(microsecond=0)
    since = second if before is None else min(before.since, second)
    duration = fallback.failure_duration_seconds
    due = add_seconds(since, FAILURE_DURATION_SECONDS if duration is None else duration)
    events = [] if before is not None else [conditions.warning_event(result.reason, result.message)]
    name, message = str(source.metric), failure_cause(result.message)[:_MAX_MESSAGE_LENGTH]
    if context.now < due:
        pending = MetricUnavailableStep(
            name, result.message, result.cause, result.failure, since, due, fallback.replicas
        )
        status = FailureRun(source.metric, since, message=message).to_status()
        return FallbackEvaluation(replace(result, status=status), pending, tuple(events))
    captured = captured_replicas(before, context)
    replicas = fallback_replicas(fallback, captured)
    if before is None or not before.is_in_fallback:
        events.append(conditions.fallback_activated(name, second - since, replicas))
    strategy = fallback.strategy or STATIC
    step = MetricFallbackStep(
        name, replicas, result.message, since, strategy, fallback.replicas, captured, result.failure, due
    )
    status = FailureRun(source.metric, since, replicas, captured, message).to_status()
    return FallbackEvaluation(FallbackProposal(replicas, status), step, tuple(events))


def captured_replicas(before: FailureRun | None, context: MetricContext) -> int:
    """Return the target's replicas at the activation of the fallback, which stay the same until the metric recovers."""
    if before is not None and before.is_in_fallback and before.captured is not None:
        return before.captured
    return context.target.replicas


def fallback_replicas(fallback: Fallback, captured: int) -> int:
    """Return the proposal of a fallback; captured replicas of 0 are ignored."""
    replicas = fallback.replicas or 1
    if captured and fallback.strategy == USE_MAX:
        return max(captured, replicas)
    if captured and fallback.strategy == USE_MIN:
        return min(captured, replicas)
    return replicas


def fallback_condition(metrics: Sequence[MetricStatus]) -> ConditionUpdate:
    """Return the ExternalMetricFallbackActive condition for the metrics of a new status."""
    runs = failure_runs_of(Status(current_metrics=tuple(metrics))).values()
    active = [(str(run.metric), run.since, run.replicas, run.message) for run in runs if run.replicas is not None]
    if active:
        return conditions.fallback_active(active)
    return conditions.fallback_inactive([(str(run.metric), run.since, run.message) for run in runs])

"""The replicas to hold when an external metric stays unreadable (KEP-5679): one clock for each metric, kept in status.

A clock starts with the first failed read, is removed by the first good one, and is carried through every pass that
reads nothing. It belongs to a metric's name and selector, not to its place in the list.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from msgspec.structs import replace

from autoscaler.algorithm import conditions
from autoscaler.algorithm.conditions import Finding
from autoscaler.algorithm.metric_context import Scene
from autoscaler.defaults import FAILURE_DURATION_SECONDS
from autoscaler.settings import FeatureGates
from autoscaler.types.decision import Event
from autoscaler.types.metric_result import Substitute, Trouble, Unavailable, Verdict
from autoscaler.types.record import Record
from autoscaler.types.spec import EXTERNAL, STATIC, USE_MAX, USE_MIN, ExternalSource, Fallback, MetricIdentifier, Spec
from autoscaler.types.status import FALLBACK, NORMAL, ExternalMetricStatus, MetricStatus, MetricValue, Status
from autoscaler.types.steps import MetricFailed, MetricFellBack, Step
from autoscaler.values.selector import SelectorError, from_label_selector, go_syntax

NOTHING_READ = MetricValue()

Identity: TypeAlias = tuple[str, str]


class Clock(Record):
    """A run of failed reads: since when and, once the fallback speaks, what it says and the target's size just then."""

    metric: MetricIdentifier
    since: datetime
    replicas: int | None = None
    captured: int | None = None

    @property
    def has_run_out(self) -> bool:
        """Tell whether the fallback speaks."""
        return self.replicas is not None

    def shown(self, current: MetricValue = NOTHING_READ) -> MetricStatus:
        """Write it as status has it."""
        state = FALLBACK if self.has_run_out else NORMAL
        entry = ExternalMetricStatus(self.metric, current, state, self.since, self.replicas, self.captured)
        return MetricStatus(type=EXTERNAL, external=entry)


Clocks: TypeAlias = Mapping[Identity, Clock]
"""The clocks that were running after the last pass."""


class Judged(Record):
    """A verdict after its clock was looked at; ``step`` and ``events`` are what that added."""

    verdict: Verdict
    step: Step | None = None
    events: tuple[Event, ...] = ()


def identity_of(metric: MetricIdentifier) -> Identity:
    """Tell metrics apart by name and by what their selectors mean, not by how they are written."""
    if metric.selector is None:
        return metric.name, ""
    try:
        return metric.name, str(from_label_selector(metric.selector))
    except SelectorError:
        return metric.name, go_syntax(metric.selector)


def configured(spec: Spec) -> tuple[ExternalSource, ...]:
    """List the metrics that have a fallback."""
    return tuple(
        metric.external
        for metric in spec.metrics or ()
        if metric.type == EXTERNAL and metric.external is not None and metric.external.fallback is not None
    )


def clocks_of(status: Status) -> Clocks:
    """Read the clocks that the last pass left; where two entries are one metric, the earlier start counts."""
    clocks: dict[Identity, Clock] = {}
    for slot in status.current_metrics or ():
        entry = slot.external
        if entry is not None and entry.first_failure_time is not None:
            replicas = entry.fallback_replicas if entry.fallback_status == FALLBACK else None
            clock = Clock(entry.metric, entry.first_failure_time, replicas, entry.captured_replicas)
            identity = identity_of(entry.metric)
            clocks[identity] = _merged(clocks.get(identity, clock), clock)
    return clocks


def _merged(one: Clock, other: Clock) -> Clock:
    leading = one if one.has_run_out else other
    return replace(leading, since=min(one.since, other.since))


def running_clocks(status: Status, gates: FeatureGates) -> Clocks:
    """Read the clocks to go by; those from before the feature was off are too old for that."""
    condition = status.condition(conditions.FALLBACK_ACTIVE)
    was_off = condition is not None and condition.reason == conditions.FEATURE_DISABLED
    return {} if was_off and gates.HPAExternalMetricFallback else clocks_of(status)


def carried(spec: Spec, clocks: Clocks) -> tuple[MetricStatus, ...] | None:
    """Keep the running clocks through a pass that reads no metric."""
    wanted = {identity_of(source.metric) for source in configured(spec)}
    return tuple(clock.shown() for identity, clock in clocks.items() if identity in wanted) or None


def kept(status: Status, clocks: Clocks) -> tuple[MetricStatus, ...] | None:
    """Leave what status shows of the metrics as it is, unless it holds clocks that are no longer gone by."""
    return status.current_metrics if clocks or not clocks_of(status) else None


def untouched(verdict: Verdict, clock: Clock | None) -> Verdict:
    """With the feature off: leave what stands in status as it is, and evaluate nothing."""
    if clock is None:
        return verdict
    entry = verdict.status.external
    return replace(verdict, status=clock.shown() if entry is None else clock.shown(entry.current))


def judge(source: ExternalSource, verdict: Verdict, clock: Clock | None, scene: Scene) -> Judged:
    """Look at a metric's clock: stop it, start it, let it run, or let the fallback speak."""
    if isinstance(verdict, Unavailable) and verdict.trouble is Trouble.RETRIEVAL:
        return _unreadable(source, verdict, clock, scene)
    if isinstance(verdict, Unavailable) and verdict.trouble is Trouble.SPEC:
        return Judged(verdict if clock is None else replace(verdict, status=clock.shown()))
    return _readable(source, verdict, clock, scene.now)


def _readable(source: ExternalSource, verdict: Verdict, clock: Clock | None, now: datetime) -> Judged:
    """Stop the clock; if the fallback was speaking, tell that it is over."""
    entry = verdict.status.external or ExternalMetricStatus(source.metric, NOTHING_READ)
    verdict = replace(verdict, status=MetricStatus(type=EXTERNAL, external=replace(entry, fallback_status=NORMAL)))
    if clock is None or not clock.has_run_out:
        return Judged(verdict)
    return Judged(verdict, events=(conditions.fallback_deactivated(clock.metric.name, now - clock.since),))


def _unreadable(source: ExternalSource, verdict: Unavailable, before: Clock | None, scene: Scene) -> Judged:
    """Start the clock or let it run; when it has run out, the fallback speaks. Events are told at the edges only."""
    fallback = source.fallback or Fallback()
    second = scene.now.replace(microsecond=0)
    since = second if before is None else min(before.since, second)
    patience = fallback.failure_duration_seconds
    due = since + timedelta(seconds=FAILURE_DURATION_SECONDS if patience is None else patience)
    events = [] if before is not None else [conditions.warning(verdict.reason, verdict.message)]
    if scene.now < due:
        waiting = MetricFailed(
            source.metric.name, verdict.message, verdict.trouble, verdict.failure, since, due, fallback.replicas
        )
        return Judged(replace(verdict, status=Clock(source.metric, since).shown()), waiting, tuple(events))
    captured = captured_size(before, scene)
    replicas = proposal_of(fallback, captured)
    if before is None or not before.has_run_out:
        events.append(conditions.fallback_activated(source.metric.name, second - since, replicas))
    step = MetricFellBack(
        source.metric.name, replicas, verdict.message, since, fallback.strategy or STATIC, fallback.replicas, captured
    )
    clock = Clock(source.metric, since, replicas, captured)
    return Judged(Substitute(replicas, clock.shown()), step, tuple(events))


def captured_size(before: Clock | None, scene: Scene) -> int:
    """Keep the size that the target had when the fallback began to speak, until the metric is back."""
    if before is not None and before.has_run_out and before.captured is not None:
        return before.captured
    return scene.target.replicas


def proposal_of(fallback: Fallback, captured: int) -> int:
    """Say what a fallback proposes; a size of zero at activation is nothing to hold on to."""
    replicas = fallback.replicas or 1
    if captured and fallback.strategy == USE_MAX:
        return max(captured, replicas)
    if captured and fallback.strategy == USE_MIN:
        return min(captured, replicas)
    return replicas


def finding(slots: Sequence[MetricStatus]) -> Finding:
    """Say whether any fallback is in use, from what this pass writes of the metrics."""
    clocks = clocks_of(Status(current_metrics=tuple(slots))).values()
    speaking = [(clock.metric.name, clock.since, clock.replicas) for clock in clocks if clock.replicas is not None]
    if speaking:
        return conditions.fallback_active(speaking)
    return conditions.fallback_inactive([(clock.metric.name, clock.since) for clock in clocks])

"""Reports each reconcile: updates metrics, logs changes and notifies the decision listeners."""

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from autoscaler.algorithm.explain import step_text
from autoscaler.ports import DecisionListener
from autoscaler.telemetry import AutoscalerState, ControllerTelemetry, MetricState
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.spec import Spec
from autoscaler.types.status import FALLBACK, Status
from autoscaler.types.steps import (
    MetricFallbackStep,
    MetricProposalStep,
    MetricUnavailableStep,
    TargetStep,
    WriteFailedStep,
)

log = logging.getLogger(__name__)

_METRIC_STEPS: Final = (MetricProposalStep, MetricUnavailableStep, MetricFallbackStep)


class Reporter:
    """Sends the results of reconciles to metrics, log and listeners."""

    def __init__(self, telemetry: ControllerTelemetry, listeners: Sequence[DecisionListener] = ()) -> None:
        self._telemetry = telemetry
        self._listeners = listeners

    def report_reconcile(
        self,
        key: str,
        before: Autoscaler,
        spec: Spec,
        decision: Decision,
        duration: timedelta,
        read_durations: Sequence[timedelta] = (),
    ) -> None:
        """Report one reconcile; ``before`` is the object as it was before the decision.

        Upstream times fetching and calculating a metric together; the calculation takes microseconds and is left out.
        """
        current = decision.status.current_replicas
        action = _direction(current if decision.scale_to is None else decision.scale_to, current)
        self._telemetry.reconciles.record(duration, action, _error(decision))
        steps = [step for step in decision.steps if isinstance(step, _METRIC_STEPS)]
        for metric, step, read_duration in zip(spec.metrics or (), steps, read_durations, strict=False):
            if isinstance(step, MetricUnavailableStep):
                self._telemetry.metrics.record(read_duration, "none", "internal", metric.type)
            else:
                action = _direction(step.replicas, before.status.current_replicas)
                self._telemetry.metrics.record(read_duration, action, "none", metric.type)
        _log_change(key, before.status, decision)
        _log_decision(key, decision)
        for listener in self._listeners:
            listener.on_decision(key, before, decision)

    def report_failure(self, key: str, error: Exception, delay: timedelta) -> None:
        """Count and log a reconcile that raised; ``delay`` is the time until the next attempt."""
        self._telemetry.reconcile_failures.inc()
        fields = {"autoscaler": key, "retry_in_seconds": delay.total_seconds()}
        log.error("reconcile failed", exc_info=error, extra=fields)

    def report_discarded_state(self, key: str, reason: str) -> None:
        log.warning("controller state discarded", extra={"autoscaler": key, "reason": reason})

    def report_deleted(self, key: str) -> None:
        for listener in self._listeners:
            listener.on_deleted(key)


def state_of(key: str, decision: Decision) -> AutoscalerState:
    """Return the state of an autoscaler for the metrics endpoint."""
    namespace, _, name = key.partition("/")
    status = decision.status
    target = next((step for step in decision.steps if isinstance(step, TargetStep)), None)
    return AutoscalerState(
        namespace,
        name,
        decision.replicas,
        decision.at,
        tuple(_metrics(status)),
        status.current_replicas,
        None if target is None else (target.minimum, target.maximum),
        tuple((condition.type, condition.status, condition.reason) for condition in status.conditions),
    )


def _metrics(status: Status) -> Iterable[MetricState]:
    """Return the metrics with a fallback; entries with the same name and selector have one state."""
    found: dict[tuple[str, str], MetricState] = {}
    for metric in status.current_metrics or ():
        external = metric.external
        if external is not None and external.fallback_status is not None:
            key = name, selector = external.metric.name, external.metric.selector_text
            in_fallback = external.fallback_status == FALLBACK
            found[key] = MetricState(name, selector, external.first_failure_time, in_fallback)
    return found.values()


def _log_decision(key: str, decision: Decision) -> None:
    """Log every decision with its steps at debug level; the steps of metrics contain ratio and tolerance."""
    if not log.isEnabledFor(logging.DEBUG):
        return
    steps = "; ".join(step_text(step, decision.steps, decision.at) for step in decision.steps)
    fields = {"replicas": decision.replicas, "limiting_factor": decision.limiting_factor.value, "steps": steps}
    log.debug("decided", extra={"autoscaler": key, **fields})


def _log_change(key: str, before: Status, decision: Decision) -> None:
    """Log a rescale, a failed rescale or changed conditions."""
    failed = next((step for step in decision.steps if isinstance(step, WriteFailedStep)), None)
    changed = _changed_conditions(before, decision.status)
    if decision.scale_to is None and failed is None and not changed:
        return
    fields = {
        "autoscaler": key,
        "replicas": decision.replicas,
        "limiting_factor": decision.limiting_factor.value,
    }
    if decision.scale_to is not None:
        rescale = {"previous_replicas": decision.status.current_replicas, "reason": decision.rescale_reason}
        log.info("rescaled", extra={**fields, **rescale})
    elif failed is not None:
        failure = {"replicas": failed.replicas, "error": failed.message[:256]}
        message = "rescale outcome unknown" if failed.outcome_unknown else "rescale failed"
        log.warning(message, extra={**fields, **failure})
    else:
        error = {"error": decision.error[:256]} if decision.error else {}
        log.info("conditions changed", extra={**fields, "conditions": changed, **error})


def _changed_conditions(before: Status, after: Status) -> str:
    if before.conditions == after.conditions:
        return ""
    known = {(old.type, old.status, old.reason) for old in before.conditions}
    changed = [new for new in after.conditions if (new.type, new.status, new.reason) not in known]
    return ", ".join(f"{new.type}={new.status}/{new.reason}" for new in changed)


def _direction(replicas: int, current: int) -> str:
    if replicas == current:
        return "none"
    return "scale_up" if replicas > current else "scale_down"


def _error(decision: Decision) -> str:
    if decision.error is None:
        return "none"
    return "spec" if decision.caused_by_spec else "internal"

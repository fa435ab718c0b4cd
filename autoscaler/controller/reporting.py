"""Tells what a pass came to: a line of log where something changed, the figures always, and whoever listens."""

import logging
from collections.abc import Iterator, Sequence
from datetime import timedelta

from autoscaler.ports import DecisionListener
from autoscaler.telemetry import AutoscalerState, ControllerTelemetry, MetricState, Passed
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.spec import Spec
from autoscaler.types.status import FALLBACK, Status
from autoscaler.types.steps import MetricAnswered, MetricFailed, MetricFellBack, WriteFailed

log = logging.getLogger(__name__)


class Reporter:
    """Logs, counts and tells."""

    def __init__(self, telemetry: ControllerTelemetry, audience: Sequence[DecisionListener] = ()) -> None:
        self._telemetry = telemetry
        self._audience = audience

    def passed(self, key: str, before: Autoscaler, spec: Spec, decision: Decision, took: timedelta) -> None:
        """Report one pass."""
        self._telemetry.passed(Passed(_action(decision), _error(decision)), took)
        steps = [s for s in decision.working if isinstance(s, MetricAnswered | MetricFailed | MetricFellBack)]
        for metric, step in zip(spec.metrics or (), steps, strict=False):
            if isinstance(step, MetricFailed):
                self._telemetry.computed("none", "internal", metric.type, took)
            else:
                action = _compared(step.replicas, before.status.current_replicas)
                self._telemetry.computed(action, "none", metric.type, took)
        _log(key, before.status, decision)
        for one in self._audience:
            one.decided(key, before, decision)

    def gone(self, key: str) -> None:
        """Report that an autoscaler is no more."""
        for one in self._audience:
            one.gone(key)


def state_of(key: str, decision: Decision) -> AutoscalerState:
    """Say what is to be said of an autoscaler when someone looks."""
    namespace, _, name = key.partition("/")
    return AutoscalerState(namespace, name, decision.replicas, decision.at, tuple(_metrics(decision.status)))


def _metrics(status: Status) -> Iterator[MetricState]:
    for one in status.current_metrics or ():
        entry = one.external
        if entry is not None and entry.fallback_status is not None:
            yield MetricState(entry.metric.name, entry.first_failure_time, entry.fallback_status == FALLBACK)


def _log(key: str, before: Status, decision: Decision) -> None:
    """Write one line if the pass changed something: the size, a condition, or what stands in its way."""
    failed = next((step for step in decision.working if isinstance(step, WriteFailed)), None)
    if decision.scale_to is not None:
        was, reason = decision.status.current_replicas, decision.rescale_reason
        log.info("rescaled", extra={**_facts(key, decision), "was": was, "reason": reason})
    elif failed is not None:
        refused = {"replicas": failed.replicas, "error": failed.message[:256]}
        log.warning("not rescaled", extra={**_facts(key, decision), **refused})
    elif changed := _changed(before, decision.status):
        error = {"error": decision.error[:256]} if decision.error else {}
        log.info("conditions changed", extra={**_facts(key, decision), "conditions": changed, **error})


def _facts(key: str, decision: Decision) -> dict[str, object]:
    return {"autoscaler": key, "replicas": decision.replicas, "decided_by": decision.bound.value}


def _changed(before: Status, after: Status) -> str:
    if before.conditions == after.conditions:
        return ""
    known = {(one.type, one.status, one.reason) for one in before.conditions}
    new = [one for one in after.conditions if (one.type, one.status, one.reason) not in known]
    return ", ".join(f"{one.type}={one.status}/{one.reason}" for one in new)


def _action(decision: Decision) -> str:
    if decision.scale_to is None:
        return "none"
    return _compared(decision.scale_to, decision.status.current_replicas)


def _compared(replicas: int, current: int) -> str:
    if replicas == current:
        return "none"
    return "scale_up" if replicas > current else "scale_down"


def _error(decision: Decision) -> str:
    if decision.error is None:
        return "none"
    return "spec" if decision.blames_spec else "internal"

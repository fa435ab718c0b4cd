"""Render the steps of a decision as text, on request: for the page, the command line and the log."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from autoscaler.algorithm.explain_metrics import explain_fallback, explain_proposal, explain_unavailable
from autoscaler.algorithm.formatting import count, seconds, time_near, time_of_day
from autoscaler.types import steps
from autoscaler.types.autoscaler import PAUSED_ANNOTATION
from autoscaler.types.decision import Decision
from autoscaler.types.limiting_factor import winning_step
from autoscaler.types.record import Record
from autoscaler.types.spec import PERCENT_POLICY, Policy
from autoscaler.types.steps import NotAppliedReason, ScalingLimit, Step


class ExplainedStep(Record):
    """One step with its name, rule, inputs, outputs and text."""

    step: str
    rule: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    text: str


class Explanation(Record):
    """The explained steps of a decision, and when its result can change."""

    may_change_at: datetime | None
    steps: tuple[ExplainedStep, ...]


def explain(decision: Decision) -> Explanation:
    return Explanation(decision.may_change_at, tuple(_explain_step(step, decision) for step in decision.steps))


_OUTPUTS = frozenset({"replicas", "blocked", "winner", "heldBy", "limit", "until", "fallbackAt", "calculation"})


def _explain_step(step: Step, decision: Decision) -> ExplainedStep:
    fields = msgspec.to_builtins(step)
    name = fields.pop("step")
    return ExplainedStep(
        step=name,
        rule=rule(step),
        inputs={key: value for key, value in fields.items() if key not in _OUTPUTS},
        outputs={key: value for key, value in fields.items() if key in _OUTPUTS},
        text=step_text(step, decision.steps, decision.at),
    )


_RULES: dict[type[Step], str] = {
    steps.TargetStep: "the target's scale subresource and the bounds of the spec",
    steps.TargetUnavailableStep: "without the target's scale no decision is possible",
    steps.InvalidSpecStep: "an invalid spec is not evaluated",
    steps.ReconcileFailedStep: "after an internal error the reconcile is retried with backoff",
    steps.ScalingDisabledStep: "a target with 0 replicas that this autoscaler did not set is not scaled",
    steps.OutOfBoundsStep: "a target outside minReplicas and maxReplicas is scaled to the bound",
    steps.InvalidSelectorStep: "without a valid and unambiguous selector no metric is evaluated",
    steps.MetricUnavailableStep: "an unavailable metric makes no proposal and blocks scaling down",
    steps.MetricFallbackStep: "the fallback replaces a metric that failed for failureDurationSeconds",
    steps.RecommendationStep: "highest proposal; unavailable metrics block scaling down",
    steps.StabilizationStep: "no lower or higher than the recommendations of the stabilization window",
    steps.LimitStep: "scaling policies, minReplicas and maxReplicas",
    steps.ScaleFromZeroStep: "a target scaled to zero is scaled to a raised minReplicas",
    steps.NotAppliedStep: "the decision is reported but not applied",
    steps.ResultStep: "the replica count is written if it changed",
    steps.WriteFailedStep: "after a failed write the target is unchanged; without a response its scale is read again",
}


def rule(step: Step) -> str:
    if isinstance(step, steps.MetricProposalStep):
        return step.calculation.rule.value
    return _RULES[type(step)]


def step_text(step: Step, all_steps: Sequence[Step] = (), at: datetime | None = None) -> str:  # noqa: C901, PLR0911, PLR0912
    """Return a step as a line; ``all_steps`` name the metric of the recommendation, ``at`` is the decision's time."""
    match step:
        case steps.TargetStep():
            replicas = f"spec {count(step.replicas, 'replica')}, status {step.status_replicas}"
            return f"target: {replicas}; bounds {step.minimum} to {step.maximum}"
        case steps.TargetUnavailableStep():
            return f"target: the scale cannot be read: {step.message}"
        case steps.InvalidSpecStep():
            return f"spec: invalid: {'; '.join(step.problems)}"
        case steps.ReconcileFailedStep():
            return f"reconcile: failed: {step.message}"
        case steps.ScalingDisabledStep():
            gate = "" if step.scale_to_zero_enabled else " (feature gate HPAScaleToZero is off)"
            return f"scaling disabled: 0 replicas, not set by this autoscaler; set replicas to enable scaling{gate}"
        case steps.OutOfBoundsStep():
            bound = "above maxReplicas" if step.current > step.replicas else "below minReplicas"
            return f"bounds: {step.current} is {bound}: scale to {step.replicas} without evaluating metrics"
        case steps.InvalidSelectorStep():
            return f"selector: the target's pods cannot be determined: {step.message}"
        case steps.MetricProposalStep():
            return explain_proposal(step)
        case steps.MetricUnavailableStep():
            return explain_unavailable(step, at)
        case steps.MetricFallbackStep():
            return explain_fallback(step, at)
        case steps.RecommendationStep():
            return f"recommendation: {_recommendation(step, all_steps)}"
        case steps.StabilizationStep():
            return f"stabilization: {_stabilization(step)}"
        case steps.LimitStep():
            return f"limits: {_limits(step)}"
        case steps.ScaleFromZeroStep():
            return f"bounds: minReplicas was raised to {step.replicas} while at zero: scale to {step.replicas}"
        case steps.NotAppliedStep():
            return f"not applied: {_not_applied(step, at)}; desired: {count(step.replicas, 'replica')}"
        case steps.ResultStep():
            change = "unchanged" if step.replicas == step.current else f"was {step.current}"
            return f"result: {count(step.replicas, 'replica')}, {change}"
        case _:
            outcome = "may have failed" if step.outcome_unknown else "failed"
            return f"result: write of {count(step.replicas, 'replica')} to the target {outcome}: {step.message}"


def _recommendation(step: steps.RecommendationStep, all_steps: Sequence[Step]) -> str:
    unavailable = f"{step.unavailable} of {step.metrics} metrics unavailable"
    if step.unavailable == step.metrics:
        which = "the metric is" if step.metrics == 1 else "all metrics are"
        return f"none, {which} unavailable: stay at {step.current}"
    if step.blocked:
        return f"none, {unavailable}: do not scale down from {step.current}"
    winner = winning_step(step, all_steps) if all_steps else None
    notes = [unavailable] if step.unavailable else []
    if isinstance(winner, steps.MetricProposalStep | steps.MetricFallbackStep):
        notes.insert(0, f"from {winner.metric}")
    return f"{step.replicas} ({'; '.join(notes)})" if notes else f"{step.replicas}"


def _stabilization(step: steps.StabilizationStep) -> str:
    window = seconds(step.window)
    if step.held_by is None:
        return f"{step.replicas}, unchanged by the {window} window"
    until = time_of_day(step.held_by.at + step.window)
    return (
        f"{step.replicas} until {until} "
        f"({window} window contains {step.held_by.replicas} from {time_of_day(step.held_by.at)})"
    )


def _limits(step: steps.LimitStep) -> str:
    match step.limit:
        case ScalingLimit.NONE:
            return f"{step.replicas}, within policies and bounds"
        case ScalingLimit.MINIMUM:
            return f"{step.replicas} (minReplicas)"
        case ScalingLimit.MAXIMUM:
            return f"{step.replicas} (maxReplicas)"
        case _:
            return f"{step.replicas} ({_rate(step)})"


def _rate(step: steps.LimitStep) -> str:
    if step.fixed_rate:
        return "default scale-up rate: double, or 4 replicas"
    if step.policy is None:
        return "selectPolicy is Disabled for this direction"
    later = f", more at {time_of_day(step.until)}" if step.until is not None else ""
    return f"policy allows {_amount(step.policy)} in {step.policy.period_seconds} s{later}"


def _amount(policy: Policy) -> str:
    return f"{policy.value} %" if policy.type == PERCENT_POLICY else count(policy.value, "pod")


def _not_applied(step: steps.NotAppliedStep, at: datetime | None) -> str:
    match step.reason:
        case NotAppliedReason.CONFLICT:
            return f"the target is also scaled by {', '.join(step.conflicts)}"
        case NotAppliedReason.PAUSED:
            if step.annotation is not None:
                return f"paused by the annotation {PAUSED_ANNOTATION}, until it is removed"
            until = time_near(step.until, at) if step.until is not None else "spec.mode is changed"
            return f"paused until {until}"
        case _:
            return "spec.mode is DryRun"

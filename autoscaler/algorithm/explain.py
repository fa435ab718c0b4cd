"""Puts the working of a decision into sentences that a tired person understands, when someone reads them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from autoscaler.algorithm.explain_metrics import tell_answer, tell_failure, tell_fallback
from autoscaler.algorithm.formatting import clock, count, seconds
from autoscaler.types import steps
from autoscaler.types.decision import Decision
from autoscaler.types.limiting_factor import winning_step
from autoscaler.types.record import Record
from autoscaler.types.spec import PERCENT_POLICY, Policy
from autoscaler.types.steps import Hold, Limit, Step


class ExplainedStep(Record):
    """One step for a reader: its name, the rule, what went in, what came out, and the sentence."""

    step: str
    rule: str
    went_in: dict[str, Any]
    came_out: dict[str, Any]
    sentence: str


class Explanation(Record):
    """A decision for a reader."""

    summary: str
    bound: str
    may_change_at: datetime | None
    working: tuple[ExplainedStep, ...]


def explain(decision: Decision) -> Explanation:
    """Explain a decision: the log, the page, the command line and simulation all print this."""
    return Explanation(
        summary=summary(decision),
        bound=decision.bound.value,
        may_change_at=decision.may_change_at,
        working=tuple(_explain_step(step, decision.working) for step in decision.working),
    )


def summary(decision: Decision) -> str:
    """Say in one line what was decided and what decided it."""
    current = decision.status.current_replicas
    moved = f"{current} → {decision.scale_to}" if decision.scale_to is not None else f"stays at {current}"
    until = decision.may_change_at
    return f"{moved}; decided by {decision.bound.value}" + (f"; may change at {clock(until)}" if until else "")


_OUTCOMES = frozenset({"replicas", "blocked", "winner", "heldBy", "limit", "until", "fallbackAt", "calculation"})


def _explain_step(step: Step, working: Sequence[Step]) -> ExplainedStep:
    numbers = msgspec.to_builtins(step)
    name = numbers.pop("step")
    return ExplainedStep(
        step=name,
        rule=rule(step),
        went_in={key: value for key, value in numbers.items() if key not in _OUTCOMES},
        came_out={key: value for key, value in numbers.items() if key in _OUTCOMES},
        sentence=sentence(step, working),
    )


_RULES: dict[type[Step], str] = {
    steps.TargetSeen: "the scale subresource says what is and what was asked for",
    steps.TargetNotSeen: "without the target's scale nothing is decided",
    steps.SpecRefused: "a spec that makes no sense is not guessed at",
    steps.SwitchedOff: "zero replicas set by someone else means: switched off",
    steps.OutOfBounds: "outside minReplicas and maxReplicas no metric is asked",
    steps.SelectorRefused: "without knowing whose pods they are nothing is decided",
    steps.MetricFailed: "a metric that cannot be told has no say, and blocks going down",
    steps.MetricFellBack: "a metric that stays unreadable is replaced by its fallback",
    steps.Combined: "the highest proposal wins; with a metric silent it never goes down",
    steps.Stabilized: "no further than the recommendations of the window",
    steps.Limited: "no faster than the policies, no further than the bounds",
    steps.Woken: "a target that was scaled to zero wakes to minReplicas",
    steps.Held: "decided and told, but not carried out",
    steps.Concluded: "the size that is written, if it is new",
    steps.WriteFailed: "a scale that could not be written stays as it was",
}


def rule(step: Step) -> str:
    """Name the rule that a step applied."""
    if isinstance(step, steps.MetricAnswered):
        return step.calculation.rule.value
    return _RULES[type(step)]


def sentence(step: Step, working: Sequence[Step] = ()) -> str:  # noqa: C901, PLR0911, PLR0912 - a line for each step
    """Say one step in a sentence; ``working`` lets it name the metric that won."""
    match step:
        case steps.TargetSeen():
            asked = count(step.replicas, "replica")
            return (
                f"the target asks for {asked} and has {step.status_replicas}; allowed: {step.minimum} to {step.maximum}"
            )
        case steps.TargetNotSeen():
            return f"the target's scale cannot be read, so nothing else was looked at: {step.message}"
        case steps.SpecRefused():
            return f"the spec is wrong, so nothing was looked at: {'; '.join(step.problems)}"
        case steps.SwitchedOff():
            return _switched_off(step)
        case steps.OutOfBounds():
            bound = "above maxReplicas" if step.current > step.replicas else "below minReplicas"
            return f"{step.current} is {bound}, so it goes to {step.replicas} at once, without asking any metric"
        case steps.SelectorRefused():
            return f"it cannot be told which pods belong to the target: {step.message}"
        case steps.MetricAnswered():
            return tell_answer(step)
        case steps.MetricFailed():
            return tell_failure(step)
        case steps.MetricFellBack():
            return tell_fallback(step)
        case steps.Combined():
            return _combined(step, working)
        case steps.Stabilized():
            return _stabilized(step)
        case steps.Limited():
            return _limited(step)
        case steps.Woken():
            return f"minReplicas was raised to {step.replicas} while at zero, so it wakes to {step.replicas}"
        case steps.Held():
            return _held(step)
        case steps.Concluded():
            if step.replicas == step.current:
                return f"stays at {step.current}"
            return f"goes from {step.current} to {step.replicas}"
        case _:
            return f"{count(step.replicas, 'replica')} could not be written to the target: {step.message}"


def _switched_off(step: steps.SwitchedOff) -> str:
    told = "the target is at zero and this autoscaler did not put it there, so it stays: set replicas to switch it on"
    return told if step.scaling_to_zero else f"{told} (feature gate HPAScaleToZero is off)"


def _combined(step: steps.Combined, working: Sequence[Step]) -> str:
    if step.failed == step.asked:
        return f"no metric has a say, so it stays at {step.current}"
    if step.blocked:
        return f"{step.failed} of {step.asked} metrics have no say, so it does not go down from {step.current}"
    winner = winning_step(step, working) if working else None
    name = f" ({winner.metric})" if isinstance(winner, steps.MetricAnswered | steps.MetricFellBack) else ""
    silent = f"; {step.failed} of {step.asked} have no say, which is enough to stay or grow" if step.failed else ""
    return f"together they ask for {step.replicas}{name}{silent}"


def _stabilized(step: steps.Stabilized) -> str:
    window = seconds(step.window)
    if step.held_by is None:
        return f"wants {step.wanted}; the {window} window changes nothing"
    held, until = step.held_by, step.held_by.at + step.window
    contains = f"the {window} window still contains {held.replicas} from {clock(held.at)}"
    return f"wants {step.wanted}, holds {step.replicas} until {clock(until)}: {contains}"


def _limited(step: steps.Limited) -> str:
    wanted = f"wants {step.wanted}"
    match step.limit:
        case Limit.NONE:
            return f"{wanted}, which is within all limits"
        case Limit.MINIMUM:
            return f"{wanted}, but minReplicas is {step.replicas}"
        case Limit.MAXIMUM:
            return f"{wanted}, but maxReplicas is {step.replicas}"
        case _:
            return f"{wanted}, may go to {step.replicas}: {_rate(step)}"


def _rate(step: steps.Limited) -> str:
    if step.fixed_rate:
        return "without behavior it at most doubles, or goes to 4"
    if step.policy is None:
        return "selectPolicy is Disabled for this direction"
    later = f"; more at {clock(step.until)}" if step.until is not None else ""
    return f"the policies allow {_amount(step.policy)} in {step.policy.period_seconds} s{later}"


def _amount(policy: Policy) -> str:
    return f"{policy.value} %" if policy.type == PERCENT_POLICY else count(policy.value, "pod")


def _held(step: steps.Held) -> str:
    would = f"it would be {count(step.replicas, 'replica')}"
    match step.hold:
        case Hold.RIVAL:
            return f"not carried out, because the target is also scaled by {', '.join(step.rivals)}; {would}"
        case Hold.PAUSED:
            until = f"until {clock(step.until)}" if step.until is not None else "until spec.mode is changed"
            return f"not carried out, because it is paused {until}; {would}"
        case _:
            return f"not carried out, because spec.mode is DryRun; {would}"

"""The state of an autoscaler for ``kubectl get``, and an event for every change of it.

The state is the text of the display states. It is part of the status, so that the next reconcile, also that of another
process, can compare with it. The algorithm itself sends the events of Kubernetes and of fallbacks.
"""

from collections.abc import Collection, Iterator
from typing import Final

from msgspec.structs import replace

from autoscaler.algorithm import conditions
from autoscaler.algorithm.display_state import SEVERITY_RANK, DisplayState, State, display_states
from autoscaler.types import steps
from autoscaler.types.decision import Decision, Event
from autoscaler.types.status import Status

_OF_METRICS: Final = frozenset({State.FALLBACK, State.METRIC_FAILING, State.METRIC_UNAVAILABLE})
_UNREADABLE: Final = frozenset({State.METRIC_FAILING, State.METRIC_UNAVAILABLE})
_NOT_APPLIED: Final = frozenset({State.CONFLICT, State.PAUSED, State.DRY_RUN})
_WITHOUT_DETAIL: Final = frozenset(
    {
        State.RECONCILE_FAILED,
        State.WRITE_FAILED,
        State.TARGET_UNAVAILABLE,
        State.INVALID_SPEC,
        State.INVALID_SELECTOR,
    }
)
"""States whose details are long; a condition has them."""

_NOT_EVALUATED: Final = (
    steps.TargetUnavailableStep,
    steps.InvalidSpecStep,
    steps.ReconcileFailedStep,
    steps.ScalingDisabledStep,
)
_STARTED: Final = {
    State.CONFLICT: ("Warning", "AmbiguousTarget"),
    State.PAUSED: ("Normal", "Paused"),
    State.DRY_RUN: ("Normal", "DryRun"),
}
"""Types and reasons of events; their message is that of the condition."""

_ENDED: Final = {
    State.CONFLICT: ("ConflictResolved", "no other autoscaler has the same target any more"),
    State.PAUSED: ("Resumed", "scaling is no longer paused"),
    State.DRY_RUN: ("DryRunEnded", "spec.mode is no longer DryRun"),
}
_NAMES: Final = frozenset(state.value for state in State)
_METRICS_NOT_READ: Final = (*_NOT_EVALUATED, steps.OutOfBoundsStep, steps.InvalidSelectorStep)


def with_state(decision: Decision, before: Status) -> Decision:
    """Return the decision with its state in the status, and with the events of the changes since ``before``."""
    states = display_states(decision)
    if len(states) == 1 and _format(states[0]) == before.state == decision.status.state:
        return decision  # the state is the only one, as before: nothing began or ended
    previous = _parse(before.state or "")
    known = {state.name: _format(state) for state in reversed(states)}  # of two with the same name, the first
    unknown = {name: text for name, text in previous.items() if name in _not_evaluated(decision)}
    shown = {**unknown, **known}
    if len(shown) > 1:
        shown = {name: text for name, text in shown.items() if name not in {State.NORMAL, State.SCALED_TO_ZERO}}
    text = ", ".join(shown[name] for name in sorted(shown, key=SEVERITY_RANK.__getitem__))
    events = tuple(_events(decision, previous.keys(), shown.keys()))
    return replace(decision, status=replace(decision.status, state=text), events=(*decision.events, *events))


def _not_evaluated(decision: Decision) -> frozenset[State]:
    """Return the states that the decision says nothing about, because it ended before they were evaluated."""
    found: frozenset[State] = frozenset()
    for step in decision.steps:
        if isinstance(step, _METRICS_NOT_READ):
            found |= _OF_METRICS
        if isinstance(step, _NOT_EVALUATED):
            found |= _NOT_APPLIED
    return found


def _format(state: DisplayState) -> str:
    detail = "" if state.name in _WITHOUT_DETAIL else state.reason or state.detail
    return f"{state.name.value} ({detail})" if detail else state.name.value


def _parse(text: str) -> dict[State, str]:
    """Return the states of a text by name; details contain no parentheses."""
    found: dict[State, str] = {}
    while text:
        name = text.partition(", ")[0]
        if "(" in name:  # the details may contain commas
            details, _, rest = text.partition(")")
            entry, text = f"{details})", rest.removeprefix(", ")
        else:
            entry, _, text = text.partition(", ")
        if (known := entry.partition(" (")[0]) in _NAMES:
            found[State(known)] = entry
    return found


def _events(decision: Decision, before: Collection[State], after: Collection[State]) -> Iterator[Event]:
    able = decision.status.condition(conditions.ABLE_TO_SCALE)
    message = able.message if able is not None else ""
    for state, (kind, reason) in _STARTED.items():
        if state in after and state not in before:
            yield Event(kind, reason, message)
    for state, (reason, text) in _ENDED.items():
        if state in before and not {state, State.CONFLICT} & {*after}:  # a conflict takes precedence over a pause
            yield conditions.normal_event(reason, text)
    if _UNREADABLE & {*before} and not _OF_METRICS & {*after} and State.FALLBACK not in before:
        yield conditions.normal_event("MetricRecovered", "all metrics can be read again")

"""Check the target's selector, and find autoscalers that select the same pods."""

from collections.abc import Mapping, Sequence

from autoscaler.algorithm.conditions import NO_SELECTOR, ConditionUpdate, selector_invalid, warning_event
from autoscaler.types.decision import Event
from autoscaler.types.observation import Observation, Pod, ScaleTarget
from autoscaler.types.record import Record
from autoscaler.values.selector import Selector


class SelectorProblem(Record):
    """Why the target's pods cannot be determined."""

    event: Event
    condition: ConditionUpdate


def check_selector(target: ScaleTarget, observation: Observation) -> SelectorProblem | None:
    """Return the problem of the target's selector: missing, invalid or shared with another autoscaler."""
    if not target.selector:
        return SelectorProblem(warning_event("SelectorRequired", "selector is required"), NO_SELECTOR)
    if target.selector_error is not None:
        message = f"couldn't convert selector into a corresponding internal selector object: {target.selector_error}"
        return _problem("InvalidSelector", message)
    if len(observation.selected_by) > 1:
        names = " ".join(observation.selected_by)
        message = f"pods by selector {target.selector} are controlled by more than one HPA (e.g. [{names}])"
        return _problem("AmbiguousSelector", message)
    return None


def _problem(reason: str, message: str) -> SelectorProblem:
    return SelectorProblem(warning_event(reason, message), selector_invalid(reason, message))


def selecting_autoscalers(pods: Sequence[Pod], selectors: Mapping[str, Selector], limit: int = 2) -> tuple[str, ...]:
    """Return the first autoscalers by name whose selector matches at least one pod; two suffice for an ambiguity."""
    matching = (name for name in sorted(selectors) if any(selectors[name].matches(pod.labels) for pod in pods))
    return tuple(name for name, _ in zip(matching, range(limit), strict=False))

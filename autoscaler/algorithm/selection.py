"""Which pods belong to a target, and whether anyone else says the same."""

from collections.abc import Mapping, Sequence

from autoscaler.algorithm.conditions import NO_SELECTOR, Finding, selector_refused, warning
from autoscaler.types.decision import Event
from autoscaler.types.observation import Observation, Pod, ScaleTarget
from autoscaler.types.record import Record
from autoscaler.values.selector import Selector


class Refusal(Record):
    """Why the target's pods cannot be told."""

    event: Event
    finding: Finding

    @property
    def message(self) -> str:
        """What is wrong, as the error tells it."""
        return self.event.message


def refuse_selector(target: ScaleTarget, seen: Observation) -> Refusal | None:
    """Say what is wrong with the target's selector, if anything."""
    if not target.selector:
        return Refusal(warning("SelectorRequired", "selector is required"), NO_SELECTOR)
    if target.selector_error is not None:
        message = f"couldn't convert selector into a corresponding internal selector object: {target.selector_error}"
        return _refusal("InvalidSelector", message)
    if len(seen.selecting) > 1:
        names = " ".join(seen.selecting)
        message = f"pods by selector {target.selector} are controlled by more than one HPA (e.g. [{names}])"
        return _refusal("AmbiguousSelector", message)
    return None


def _refusal(reason: str, message: str) -> Refusal:
    return Refusal(warning(reason, message), selector_refused(reason, message))


def who_selects(pods: Sequence[Pod], selectors: Mapping[str, Selector], most: int = 2) -> tuple[str, ...]:
    """Name, in order, the autoscalers whose selector matches at least one of the pods; two are enough to complain."""
    found = (name for name in sorted(selectors) if any(selectors[name].matches(pod.labels) for pod in pods))
    return tuple(name for name, _ in zip(found, range(most), strict=False))

"""Clear the ScaledToZero condition of a target that has replicas.

Upstream changes the condition only when it scales, so it stays True after another client has scaled the target up, and
after a crash between the write of the condition and that of the scale. A later zero of a user would then be taken for
the controller's own and be undone. ``decide`` behaves like upstream; the controller applies this to its result.
"""

from msgspec.structs import replace

from autoscaler.algorithm.conditions import SCALED_TO_ZERO, SCALED_TO_ZERO_FALSE
from autoscaler.types.decision import Decision
from autoscaler.types.status import TRUE, Condition
from autoscaler.types.steps import TargetStep


def clear_stale_zero(decision: Decision, *, in_flight: bool) -> Decision:
    """Return the decision with ScaledToZero=False if the target has replicas and no write can be in flight.

    A write of zero in flight can still be applied, and the condition then tells that the zero is the controller's own.
    """
    condition = decision.status.condition(SCALED_TO_ZERO)
    if condition is None or condition.status != TRUE or decision.scale_to == 0 or in_flight:
        return decision
    if not any(isinstance(step, TargetStep) and step.replicas > 0 for step in decision.steps):
        return decision
    new = SCALED_TO_ZERO_FALSE
    cleared = Condition(new.type, new.status, decision.at.replace(microsecond=0), new.reason, new.message)
    conditions = tuple(cleared if old is condition else old for old in decision.status.conditions)
    return replace(decision, status=replace(decision.status, conditions=conditions), status_changed=True)

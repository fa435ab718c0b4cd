"""Clear the ScaledToZero condition of a target that has replicas.

Upstream changes the condition only when it scales, so it stays True after another client has scaled the target up, and
after a crash between the write of the condition and that of the scale. A later zero of a user would then be taken for
the controller's own and be undone. ``decide`` behaves like upstream; the controller applies this to its result.
"""

from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from autoscaler.algorithm.conditions import SCALED_TO_ZERO, SCALED_TO_ZERO_FALSE
from autoscaler.types.decision import Decision
from autoscaler.types.status import TRUE, Condition
from autoscaler.types.steps import TargetStep

_WRITE_IN_FLIGHT: Final = timedelta(seconds=60)
"""After the condition was set, a scale to zero can still succeed although its response was lost: the API server ends a
request after 60 seconds by default."""


def clear_stale_zero(decision: Decision) -> Decision:
    """Return the decision with ScaledToZero=False if the target has replicas and no write of zero can be in flight."""
    condition = decision.status.condition(SCALED_TO_ZERO)
    has_replicas = any(isinstance(step, TargetStep) and step.replicas > 0 for step in decision.steps)
    if condition is None or condition.status != TRUE or not has_replicas or decision.scale_to == 0:
        return decision
    since = condition.last_transition_time
    if since is not None and decision.at - since < _WRITE_IN_FLIGHT:
        return decision
    new = SCALED_TO_ZERO_FALSE
    cleared = Condition(new.type, new.status, decision.at.replace(microsecond=0), new.reason, new.message)
    conditions = tuple(cleared if old is condition else old for old in decision.status.conditions)
    return replace(decision, status=replace(decision.status, conditions=conditions), status_changed=True)

"""The status of the reconcile after a rescale, which usually says nothing new.

The status that is stored after a rescale has the replicas that were written. If nothing else happens, the next
reconcile only replaces the reason ``SucceededRescale`` of AbleToScale by ``ReadyForNewScale``. The last rescale stays
reported instead, until the status is written for another reason: a write for this one would double those of a rescale.
"""

from autoscaler.algorithm import conditions
from autoscaler.algorithm.write_failures import with_condition
from autoscaler.types.status import Status


def is_settled_rescale(status: Status, stored: Status) -> bool:
    """Return whether the status differs from the stored one only in that the stored one still reports a rescale."""
    able, reported = status.condition(conditions.ABLE_TO_SCALE), stored.condition(conditions.ABLE_TO_SCALE)
    if able is None or reported is None or reported.reason != conditions.SUCCEEDED_RESCALE:
        return False
    is_ready = able.reason == conditions.READY_FOR_NEW_SCALE.reason
    return is_ready and with_condition(status, reported).is_equivalent_to(stored)

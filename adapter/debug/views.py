"""One immutable picture of everything, as the page, the command line and scripts see it. Pure."""

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec

from adapter.debug.decision_log import Kept
from adapter.debug.display_state import GRAVITY, Sign, State
from adapter.debug.formatting import time
from autoscaler.algorithm.explain import explain
from autoscaler.types.limiting_factor import Bound, decisive_step
from autoscaler.types.record import Record
from autoscaler.types.steps import TargetSeen

Json: TypeAlias = dict[str, Any]

MOST_LISTED: Final = 200
"""As many autoscalers are listed at once, those first that someone should look at; the others are found by name."""


class Wish(Record):
    """Which autoscalers to list."""

    text: str = ""
    """A part of their namespace and name."""

    state: str = ""


def listed(kept: Iterable[tuple[str, Kept]], wish: Wish) -> Json:
    """List autoscalers with their state at a glance, and count them all by state."""
    everyone = list(kept)
    counts = Counter([one.gravity for _, one in everyone])
    is_all = wish == Wish()
    wanted = everyone if is_all else [(key, one) for key, one in everyone if _is_wanted(key, one, wish)]
    first = heapq.nsmallest(MOST_LISTED, wanted, key=lambda pair: (pair[1].gravity, pair[0]))
    return {
        "total": len(everyone),
        "counts": {state.value: counts[GRAVITY[state]] for state in State if counts[GRAVITY[state]]},
        "autoscalers": [glance(key, one) for key, one in first],
        "leftOff": len(wanted) - len(first),
    }


def _is_wanted(key: str, one: Kept, wish: Wish) -> bool:
    return wish.text in key and (not wish.state or one.signs[0].state.value == wish.state)


def glance(key: str, kept: Kept) -> Json:
    """Say of one autoscaler what a list shows."""
    namespace, _, name = key.partition("/")
    decision, target = kept.decision, kept.autoscaler.spec.scale_target_ref
    return {
        "namespace": namespace,
        "name": name,
        "target": f"{target.kind}/{target.name}",
        "current": decision.status.current_replicas,
        "replicas": decision.replicas,
        "decidedAt": time(decision.at),
        "state": kept.signs[0].state.value,
        "since": time(kept.since),
        "signs": [_sign(sign) for sign in kept.signs],
    }


def _verdict(bound: Bound) -> str:
    """Say in a few words what decided."""
    return "this is what the metrics ask for" if bound is Bound.NOTHING else f"decided by {bound.value}"


def _sign(sign: Sign) -> Json:
    return {"state": sign.state.value, "note": sign.note, "since": time(sign.since)}


def portrait(key: str, kept: Kept) -> Json:
    """Say everything of one autoscaler: how it fares, and the working of its last decision, step by step."""
    decision = kept.decision
    bounds = next((step for step in decision.working if isinstance(step, TargetSeen)), None)
    return {
        **glance(key, kept),
        "minimum": None if bounds is None else bounds.minimum,
        "maximum": None if bounds is None else bounds.maximum,
        "lastScaleTime": time(decision.status.last_scale_time),
        "verdict": _verdict(decision.bound),
        "explanation": {
            **msgspec.to_builtins(explain(decision)),
            "mayChangeAt": time(decision.may_change_at),
        },
        "decisive": decisive_step(decision.working),
        "conditions": [
            {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
            for one in decision.status.conditions
        ],
    }

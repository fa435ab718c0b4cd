"""The JSON views of autoscalers that the page and the command line show. Pure."""

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from adapter.debug.decision_log import LoggedAutoscaler
from adapter.debug.display_state import SEVERITY_RANK
from adapter.debug.formatting import Json, format_time
from autoscaler.algorithm.explain import explain
from autoscaler.types.limiting_factor import LimitingFactor, decisive_step_index
from autoscaler.types.steps import TargetStep

MAX_LISTED: Final = 200
"""Limit of the overview; the most severe states come first, the others are found with a filter."""


def overview(entries: Iterable[tuple[str, LoggedAutoscaler]], text: str = "", state: str = "") -> Json:
    """Return the autoscalers with ``text`` in their key and with ``state``, and the number of all in each state."""
    everything = list(entries)
    counts = Counter([entry.severity_rank for _, entry in everything])
    selected = everything
    if text or state:
        wanted = {state} if state else set(SEVERITY_RANK)
        selected = [(key, entry) for key, entry in everything if text in key and entry.states[0].name in wanted]
    listed = heapq.nsmallest(MAX_LISTED, selected, key=lambda pair: (pair[1].severity_rank, pair[0]))
    return {
        "total": len(everything),
        "counts": {one.value: counts[rank] for one, rank in SEVERITY_RANK.items() if counts[rank]},
        "autoscalers": [autoscaler_summary(key, entry) for key, entry in listed],
        "omitted": len(selected) - len(listed),
    }


def autoscaler_summary(key: str, entry: LoggedAutoscaler) -> Json:
    """Return the view of one autoscaler in a list."""
    namespace, _, name = key.partition("/")
    decision, target = entry.decision, entry.autoscaler.spec.scale_target_ref
    return {
        "namespace": namespace,
        "name": name,
        "target": f"{target.kind}/{target.name}",
        "current": decision.status.current_replicas,
        "replicas": decision.replicas,
        "decidedAt": format_time(decision.at),
        "state": entry.states[0].name.value,
        "since": format_time(entry.since),
        "states": [
            {"name": state.name.value, "detail": state.detail, "since": format_time(state.since)}
            for state in entry.states
        ],
    }


def autoscaler_view(key: str, entry: LoggedAutoscaler) -> Json:
    """Return everything about one autoscaler: its states, and the steps of its last decision."""
    decision = entry.decision
    target = next((step for step in decision.steps if isinstance(step, TargetStep)), None)
    factor = decision.limiting_factor
    return {
        **autoscaler_summary(key, entry),
        "minReplicas": None if target is None else target.minimum,
        "maxReplicas": None if target is None else target.maximum,
        "lastScaleTime": format_time(decision.status.last_scale_time),
        "limitingFactor": None if factor is LimitingFactor.NONE else factor.value,
        "explanation": {**msgspec.to_builtins(explain(decision)), "mayChangeAt": format_time(decision.may_change_at)},
        "decisiveStep": decisive_step_index(decision.steps),
        "conditions": [
            {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
            for one in decision.status.conditions
        ],
    }

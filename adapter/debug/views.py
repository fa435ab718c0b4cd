"""The JSON views of autoscalers that the page and the command line show. Pure."""

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from adapter.debug.decision_log import LoggedAutoscaler
from adapter.debug.formatting import Json, format_time
from adapter.debug.step_values import step_values
from autoscaler.algorithm.display_state import SEVERITY_RANK
from autoscaler.algorithm.explain import explain
from autoscaler.types.decision import Decision
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
        "autoscalers": [_row(key, entry) for key, entry in listed],
        "omitted": len(selected) - len(listed),
    }


def _row(key: str, entry: LoggedAutoscaler) -> Json:
    """Return what a list shows; not the time of the decision, which would change every row with every reconcile."""
    namespace, _, name = key.partition("/")
    return {
        "namespace": namespace,
        "name": name,
        "current": entry.decision.status.current_replicas,
        "replicas": entry.decision.replicas,
        "state": entry.states[0].name.value,
        "since": format_time(entry.since),
    }


def _summary(key: str, entry: LoggedAutoscaler) -> Json:
    target = entry.autoscaler.spec.scale_target_ref
    return {
        **_row(key, entry),
        "target": f"{target.kind}/{target.name}",
        "decidedAt": format_time(entry.decision.at),
        "states": [
            {
                "name": state.name.value,
                "detail": state.detail,
                "since": format_time(state.since),
                "failingSince": format_time(state.failing_since),
            }
            for state in entry.states
        ],
    }


def autoscaler_view(key: str, entry: LoggedAutoscaler) -> Json:
    """Return everything about one autoscaler: its states, and the steps of its last decision."""
    decision = entry.decision
    target = next((step for step in decision.steps if isinstance(step, TargetStep)), None)
    factor = decision.limiting_factor
    return {
        **_summary(key, entry),
        "minReplicas": None if target is None else target.minimum,
        "maxReplicas": None if target is None else target.maximum,
        "lastScaleTime": format_time(decision.status.last_scale_time),
        "limitingFactor": None if factor is LimitingFactor.NONE else factor.value,
        "explanation": {"mayChangeAt": format_time(decision.may_change_at), "steps": _steps(decision)},
        "decisiveStep": decisive_step_index(decision.steps),
        "conditions": [
            {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
            for one in decision.status.conditions
        ],
    }


def _steps(decision: Decision) -> list[Json]:
    """Return the explained steps, with ``values``: their inputs and outputs as text with units."""
    explained = msgspec.to_builtins(explain(decision))["steps"]
    return [
        {**view, "values": [*map(list, step_values(step))]}
        for view, step in zip(explained, decision.steps, strict=True)
    ]

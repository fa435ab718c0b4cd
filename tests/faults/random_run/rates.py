"""The rate policies, checked on written scales.

The limits are computed from the writes themselves, and leniently: a rescale whose status was never written is not
counted, because no process can know of it after a crash; times may differ by the duration of a reconcile.
"""

from collections.abc import Sequence
from math import ceil
from typing import Final

from tests.faults.random_run.record import (
    Json,
    ScaleWrite,
    SpecHistory,
    SpecWrite,
    StatusWrite,
    TargetWrite,
    Write,
    owners_of,
)

_MAX_LATENCY: Final = 21.0
"""Seconds between a decision and its write: the status write before a scale to zero, and the scale write."""

_DEFAULT_POLICIES: Final = {
    "scaleUp": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
    "scaleDown": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
"""The defaults of Kubernetes for a direction without policies."""

_DEFAULT_STEP: Final = 4
"""Without behavior a target is scaled up to this number, or to its double."""


def exceeded_rate(writes: Sequence[Write], index: int, history: SpecHistory, age: float) -> str | None:
    """Return how a scale write exceeds the rate of its autoscaler, empty if it does not; None if it is unknown.

    The rate is unknown if the autoscaler was edited, or the target was resized by another client, so recently that the
    decision may not have been based on the current state.
    """
    write = writes[index]
    assert isinstance(write, ScaleWrite)
    behavior = _behavior_at(write, history)
    longest = max((policy["periodSeconds"] for policy in _policies(behavior)), default=0)
    since = write.at - longest - age - _MAX_LATENCY
    owners = [state for _, state in history.owners_within(write.target, since, write.at)]
    if any(len(state) != 1 or state[0] != owners[0][0] for state in owners):
        return None
    recent = [one for one in writes[:index] if one.at >= since and getattr(one, "target", "") == write.target]
    if any(isinstance(one, TargetWrite) for one in recent):
        return None
    before = _replicas_before(writes[:index], write.target)
    if before is None or before == write.replicas or _moves_to_bound(owners[0][0], before, write.replicas):
        return None
    allowed = _allowed(writes, index, owners[0][0], before, behavior)
    is_exceeded = write.replicas > allowed if write.replicas > before else write.replicas < allowed
    return f"{write} from {before}, but the policies allow {allowed}: {behavior}" if is_exceeded else ""


def _allowed(writes: Sequence[Write], index: int, owner: SpecWrite, before: int, behavior: Json | None) -> int:
    write = writes[index]
    assert isinstance(write, ScaleWrite)
    is_up = write.replicas > before
    if behavior is None:
        return max(2 * before, _DEFAULT_STEP) if is_up else 0
    direction = "scaleUp" if is_up else "scaleDown"
    rules = behavior.get(direction) or {}
    policies = rules.get("policies") or _DEFAULT_POLICIES[direction]
    limits = [_allowed_by(policy, writes, index, owner, before) for policy in policies]
    is_most = (rules.get("selectPolicy") or "Max") == "Max"
    return max(limits) if is_most == is_up else min(limits)


def _allowed_by(policy: Json, writes: Sequence[Write], index: int, owner: SpecWrite, before: int) -> int:
    write = writes[index]
    assert isinstance(write, ScaleWrite)
    is_up, period = write.replicas > before, policy["periodSeconds"]
    certain = _changes(writes[:index], owner, write.at - period + _MAX_LATENCY, only_recorded=True)
    possible = _changes(writes[:index], owner, write.at - period - _MAX_LATENCY, only_recorded=False)
    added = sum(change for change in (certain if is_up else possible) if change > 0)
    removed = -sum(change for change in (possible if is_up else certain) if change < 0)
    start = before - added + removed
    if policy["type"] == "Pods":
        return int(start + policy["value"] if is_up else start - policy["value"])
    factor = 1 + (1 if is_up else -1) * policy["value"] / 100
    return ceil(start * factor) if is_up else int(start * factor)


def _changes(writes: Sequence[Write], owner: SpecWrite, since: float, *, only_recorded: bool) -> list[int]:
    """Return the changes of replicas since a time; optionally only those followed by a status write of their writer."""
    changes: list[int] = []
    replicas: int | None = None
    for position, write in enumerate(writes):
        if isinstance(write, TargetWrite) and write.target == owner.target:
            replicas = write.replicas
        if not isinstance(write, ScaleWrite) or write.target != owner.target:
            continue
        is_recent = write.at > since and replicas is not None
        if is_recent and (not only_recorded or _is_recorded(writes[position:], write, owner.name)):
            changes.append(write.replicas - (replicas or 0))
        replicas = write.replicas
    return changes


def _is_recorded(later: Sequence[Write], write: ScaleWrite, name: str) -> bool:
    return any(isinstance(one, StatusWrite) and (one.writer, one.name) == (write.writer, name) for one in later)


def _replicas_before(writes: Sequence[Write], target: str) -> int | None:
    for write in reversed(writes):
        if isinstance(write, ScaleWrite | TargetWrite) and write.target == target:
            return write.replicas
    return None


def _moves_to_bound(owner: SpecWrite, before: int, after: int) -> bool:
    """Return whether the target was outside its bounds: it is then moved to the nearer bound at once."""
    spec = owner.spec or {}
    minimum, maximum = spec.get("minReplicas", 1), spec["maxReplicas"]
    return bool((before < minimum and after == minimum) or (before > maximum and after == maximum))


def _behavior_at(write: ScaleWrite, history: SpecHistory) -> Json | None:
    owners = owners_of(write.target, history.at(write.at))
    behavior = (owners[0].spec or {}).get("behavior") if owners else None
    return dict(behavior) if behavior else None


def _policies(behavior: Json | None) -> list[Json]:
    rules = [(behavior or {}).get(direction) or {} for direction in ("scaleUp", "scaleDown")]
    return [policy for one in rules for policy in one.get("policies") or ()]

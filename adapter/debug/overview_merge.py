"""Combines the overviews of all replicas that control shards. Pure."""

from collections import Counter
from collections.abc import Sequence

from adapter.debug.formatting import Json
from adapter.debug.views import MAX_LISTED
from autoscaler.algorithm.display_state import SEVERITY_RANK

_RANKS = {state.value: rank for state, rank in SEVERITY_RANK.items()}


def merged_overview(own: Json, others: Sequence[Json], missing: Sequence[str]) -> Json:
    """Return the overview of all autoscalers; ``missing`` are the replicas that did not respond."""
    everything = (own, *others)
    counts: Counter[str] = Counter()
    for one in everything:
        counts.update(one["counts"])
    rows = sorted((row for one in everything for row in one["autoscalers"]), key=_sort_key)
    merged = {
        **own,
        "total": sum(one["total"] for one in everything),
        "counts": {state: counts[state] for state in sorted(counts, key=_rank)},
        "autoscalers": rows[:MAX_LISTED],
        "omitted": sum(one["omitted"] for one in everything) + len(rows[MAX_LISTED:]),
        "rulesFailing": sorted({name for one in everything for name in one["rulesFailing"]}),
        "historyProblem": next((one["historyProblem"] for one in everything if one["historyProblem"]), None),
    }
    if missing:
        merged["missingReplicas"] = sorted(missing)
    if "selected" in own:
        merged["selected"] = next((one["selected"] for one in everything if one.get("selected")), None)
    return merged


def _sort_key(row: Json) -> tuple[int, str]:
    """Return the order of `views.overview`: most severe first."""
    return _rank(row["state"]), f"{row['namespace']}/{row['name']}"


def _rank(state: str) -> int:
    """Return the position of a state; one of a newer version is last."""
    return _RANKS.get(state, len(_RANKS))

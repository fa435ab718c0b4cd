"""The overview of all replicas."""

from adapter.debug.overview_merge import merged_overview
from adapter.debug.views import MAX_LISTED


def row(name, state="normal"):
    return {"namespace": "shop", "name": name, "state": state, "current": 1, "replicas": 1, "since": None}


def overview(*rows, **more):
    counts: dict[str, int] = {}
    for one in rows:
        counts[one["state"]] = counts.get(one["state"], 0) + 1
    content = {"total": len(rows), "counts": counts, "autoscalers": list(rows), "omitted": 0}
    return {**content, "rulesFailing": [], "rulesTotal": 3, "historyProblem": None, **more}


def test_autoscalers_of_all_replicas_are_counted_and_sorted_by_severity():
    own = overview(row("b"), row("d"))
    other = overview(row("a"), row("c", "conflict"), rulesFailing=["queue"])
    merged = merged_overview(own, [other], [])
    assert [one["name"] for one in merged["autoscalers"]] == ["c", "a", "b", "d"]
    assert merged["total"] == 4
    assert merged["counts"] == {"conflict": 1, "normal": 3}
    assert merged["rulesFailing"] == ["queue"]
    assert "missingReplicas" not in merged


def test_replica_without_response_is_named():
    assert merged_overview(overview(), [], ["10.0.0.2:6443"])["missingReplicas"] == ["10.0.0.2:6443"]


def test_list_is_limited_and_the_rest_is_counted():
    own = overview(*(row(f"a{number:03}") for number in range(MAX_LISTED)))
    other = overview(*(row(f"b{number:03}") for number in range(10)), omitted=5)
    merged = merged_overview(own, [other], [])
    assert len(merged["autoscalers"]) == MAX_LISTED
    assert merged["omitted"] == 15


def test_selected_autoscaler_and_problem_of_the_history_are_those_of_the_replica_that_has_them():
    own = overview(selected=None)
    other = overview(row("a"), selected={"name": "a"}, historyProblem="no space")
    merged = merged_overview(own, [other], [])
    assert merged["selected"] == {"name": "a"}
    assert merged["historyProblem"] == "no space"

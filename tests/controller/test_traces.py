"""Conformance of the whole controller: traces of upstream's HPA controller are replayed against an API server.

For each step of a trace, scale, metrics and pods are set up in a cluster, one reconcile runs, and its writes are
compared with those of upstream. Events of upstream must be the same and in the same order; only the events that are
documented as added may occur beside them.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from adapter.fakecluster.api_errors import ApiError
from autoscaler.conformance.report import compare
from tests.controller.real_cluster import RealCluster
from tests.controller.replay import AUTOSCALERS, TraceReplay, can_be_replayed

PARITY = Path(__file__).parents[2] / "docs" / "hpa-parity.md"
ADDED_EVENTS = {"Paused", "Resumed", "DryRun", "DryRunEnded", "AmbiguousTarget", "ConflictResolved", "MetricRecovered"}
"""Reasons of events of changes of the state, which upstream does not have."""

TRACES = json.loads((Path(__file__).parents[1] / "vectors" / "reconcile.json").read_text())["traces"]
REPLAYED = [trace for trace in TRACES if can_be_replayed(trace)]
REJECTED = {"invalid-metric-spec/04": "operator", "invalid-metric-spec/06": "values"}
"""Traces with a spec that the schema of PodAutoscaler rejects, and the rejected field; an HPA may have it."""

ACCEPTED = [trace for trace in REPLAYED if trace["id"] not in REJECTED]
FIRST = {trace["theme"]: trace for trace in reversed(ACCEPTED)}
ON_CONTROL_PLANE = ACCEPTED if os.environ.get("STEADYSCALE_ALL_TRACES") else [*FIRST.values()]
"""The first trace of every theme; all traces take some minutes."""


KEPT_SCALE_TIMES = {"status-update-error/03"}
"""Traces in which the status of a rescale cannot be written: upstream loses ``lastScaleTime``, Steadyscale keeps it."""

NOT_REPLAYED = {
    "invalid-metric-spec": "the API server rejects the spec",
    "min-nil": "the API server sets the default of minReplicas",
    "selector-errors": "the API server normalizes the selector of a scale",
    "spec-changes": "an update without changes has no effect",
    "target-kinds": "the API server does not know the kind",
    "upstream/026": "the API server rejects the spec",
    "upstream/028": "the API server rejects the spec",
    "upstream/058": "the API server rejects the spec",
    "upstream/064": "the API server rejects the spec",
}
"""Traces, or single traces of a theme, that only the conformance vectors can run, and why."""


def test_every_trace_is_replayed_unless_an_api_server_makes_it_impossible():
    excluded = [trace["id"] for trace in TRACES if trace not in REPLAYED]
    assert len(excluded) == 19
    assert [name for name in excluded if not name.startswith(tuple(NOT_REPLAYED))] == []


def test_traces_with_disabled_feature_gates_are_replayed():
    disabled = [trace for trace in REPLAYED if not all(trace["featureGates"].values())]
    assert len(disabled) == 19


def test_no_trace_is_excluded_because_of_a_feature_gate():
    enabled = dict.fromkeys(TRACES[0]["featureGates"], True)
    assert [trace for trace in TRACES if can_be_replayed(trace | {"featureGates": enabled})] == REPLAYED


def test_added_events_are_documented_and_are_not_those_of_upstream():
    (row,) = (line for line in PARITY.read_text().splitlines() if "| `status.state`," in line)
    documented = re.findall(r"`(\w+)`", row.partition("and events")[2].partition("|")[0])
    upstream = {event["reason"] for trace in TRACES for step in trace["steps"] for event in step["expect"]["events"]}
    assert (set(documented), upstream & ADDED_EVENTS) == (ADDED_EVENTS, set())


@pytest.mark.parametrize("trace", REPLAYED, ids=lambda trace: trace["id"])
async def test_trace_has_the_results_of_upstream(trace):
    async with TraceReplay.on_fake_cluster(trace) as replay:
        await assert_equal_results(replay)


@pytest.mark.apiserver
@pytest.mark.parametrize("trace", ON_CONTROL_PLANE, ids=lambda trace: trace["id"])
async def test_trace_has_the_results_of_upstream_on_a_real_api_server(trace, isolated_plane):
    async with TraceReplay.on_control_plane(trace, isolated_plane) as replay:
        await assert_equal_results(replay)


@pytest.mark.apiserver
@pytest.mark.parametrize(("name", "field"), REJECTED.items())
async def test_schema_rejects_specs_with_unreadable_metrics(name, field, isolated_plane):
    spec = next(trace["hpa"]["spec"] for trace in REPLAYED if trace["id"] == name)
    async with RealCluster.serving(isolated_plane) as cluster:
        with pytest.raises(ApiError, match=rf"selector\.matchExpressions\[0\].*{field}"):
            cluster.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": spec})


async def assert_equal_results(replay: TraceReplay) -> None:
    scale_time = None
    for step in replay.trace["steps"]:
        expected = {"scaleUpdateAttempts": [], **step["expect"]}
        expected.pop("platformDependent", None)
        scale_time = scale_time if expected["scaledTo"] is None else step["t"]
        if replay.trace["id"] in KEPT_SCALE_TIMES and expected["status"] is not None:
            expected["status"] = {**expected["status"], "lastScaleTime": scale_time}
        results = without_added_events(await replay.step(step))
        assert list(compare(f"t={step['t']}", expected, results)) == []


def without_added_events(results: dict[str, Any]) -> dict[str, Any]:
    return {**results, "events": [event for event in results["events"] if event["reason"] not in ADDED_EVENTS]}

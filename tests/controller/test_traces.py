"""One law above the others: the controller decides as Kubernetes' own does, with an API server in between.

Every trace that upstream's controller left is replayed through ours: the scale, the metrics and the pods of each step
are put into a cluster, one pass is made, and what was written is what upstream wrote.
"""

import json
import os
from pathlib import Path

import pytest

from adapter.fakecluster.api_errors import Refused
from autoscaler.conformance.result import compare
from tests.controller.real_cluster import RealCluster
from tests.controller.replay import AUTOSCALERS, Replayed, can_be_staged

TRACES = json.loads((Path(__file__).parents[1] / "vectors" / "reconcile.json").read_text())["traces"]
STAGED = [trace for trace in TRACES if can_be_staged(trace)]
REFUSED = {"invalid-metric-spec/04": "operator", "invalid-metric-spec/06": "values"}
"""What our definition does not let in, and which field it names; Kubernetes' own finds out when it reads the metric."""

ACCEPTED = [trace for trace in STAGED if trace["id"] not in REFUSED]
FIRST = {trace["theme"]: trace for trace in reversed(ACCEPTED)}
FOR_REAL = ACCEPTED if os.environ.get("STEADYSCALE_ALL_TRACES") else [*FIRST.values()]
"""The first trace of every theme; all of them take some minutes."""


def test_most_traces_can_be_staged():
    assert len(STAGED) > len(TRACES) * 0.8


@pytest.mark.parametrize("trace", STAGED, ids=lambda trace: trace["id"])
async def test_a_trace_is_replayed_as_it_was(trace):
    async with Replayed.of(trace) as replay:
        await goes_as_it_went(replay)


@pytest.mark.apiserver
@pytest.mark.parametrize("trace", FOR_REAL, ids=lambda trace: trace["id"])
async def test_so_it_is_on_a_real_api_server(trace, lonely_plane):
    async with Replayed.for_real(trace, lonely_plane) as replay:
        await goes_as_it_went(replay)


@pytest.mark.apiserver
@pytest.mark.parametrize(("name", "field"), REFUSED.items())
async def test_what_would_never_be_read_is_refused_by_the_definition(name, field, lonely_plane):
    spec = next(trace["hpa"]["spec"] for trace in STAGED if trace["id"] == name)
    async with RealCluster.serving(lonely_plane) as cluster:
        with pytest.raises(Refused, match=rf"selector\.matchExpressions\[0\].*{field}"):
            cluster.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": spec})


async def goes_as_it_went(replay: Replayed) -> None:
    for step in replay.trace["steps"]:
        expected = {"scaleUpdateAttempts": [], **step["expect"]}
        expected.pop("platformDependent", None)
        differences = list(compare(f"t={step['t']}", expected, await replay.step(step)))
        assert differences == []

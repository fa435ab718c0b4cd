"""Grouping of pods: ready, unready, missing, ignored."""

import pytest

from autoscaler.algorithm.pods import count_ready, group_pods
from autoscaler.types.metric_result import PodGroups
from tests.builders import NOW, SETTINGS, ago, later, make_pod, make_sample

READY, UNREADY = PodGroups(1), PodGroups(0, unready=("web-0",))
MISSING, IGNORED = PodGroups(0, missing=("web-0",)), PodGroups(0, ignored=("web-0",))


def group_of(pod, resource="cpu", sample=make_sample(100)):  # noqa: B008 - frozen
    return group_pods((pod,), {} if sample is None else {"web-0": sample}, resource, SETTINGS, NOW)


@pytest.mark.parametrize(
    ("parts", "group"),
    [
        pytest.param({}, READY, id="running pod with a metric is ready"),
        pytest.param({"terminating": True}, IGNORED, id="terminating pod is ignored"),
        pytest.param({"phase": "Failed"}, IGNORED, id="failed pod is ignored"),
        pytest.param(
            {"phase": "Failed", "terminating": True}, IGNORED, id="failed and terminating pod is ignored once"
        ),
        pytest.param({"phase": "Pending"}, UNREADY, id="pending pod with a metric is unready"),
        pytest.param({"phase": "Succeeded"}, READY, id="succeeded pod with a metric is ready"),
    ],
)
@pytest.mark.parametrize("resource", ["cpu", "memory", ""])
def test_group_by_phase_for_every_resource(parts, group, resource):
    assert group_of(make_pod(**parts), resource) == group


@pytest.mark.parametrize(
    ("parts", "group"),
    [
        pytest.param({}, MISSING, id="running pod is missing"),
        pytest.param({"phase": "Succeeded"}, MISSING, id="succeeded pod is missing"),
        pytest.param({"phase": "Pending"}, UNREADY, id="pending pod is unready"),
        pytest.param({"terminating": True}, IGNORED, id="terminating pod is ignored"),
    ],
)
def test_group_of_a_pod_without_a_metric(parts, group):
    assert group_of(make_pod(**parts), sample=None) == group


@pytest.mark.parametrize(
    ("parts", "sample", "group"),
    [
        pytest.param({"ready": None}, make_sample(1), UNREADY, id="no Ready condition"),
        pytest.param({"started": None}, make_sample(1), UNREADY, id="no start time"),
        pytest.param({"ready_since": None}, make_sample(1), READY, id="ready without transition time"),
        pytest.param(
            {"ready_since": None, "ready": "False"}, make_sample(1), UNREADY, id="unready without transition time"
        ),
        pytest.param(
            {"started": ago(60), "ready_since": None},
            make_sample(1),
            READY,
            id="initializing, ready without transition time",
        ),
        pytest.param(
            {"started": ago(299), "ready_since": ago(200)},
            make_sample(1),
            READY,
            id="initializing, ready, sample after the transition",
        ),
        pytest.param(
            {"started": ago(299), "ready_since": ago(200), "ready": "False"},
            make_sample(1),
            UNREADY,
            id="initializing, unready",
        ),
        pytest.param(
            {"started": ago(299), "ready_since": ago(200), "ready": "Unknown"},
            make_sample(1),
            READY,
            id="initializing, readiness unknown counts as ready",
        ),
        pytest.param(
            {"started": ago(60), "ready_since": ago(40)},
            make_sample(1, at=ago(10), window=30),
            READY,
            id="initializing, sample exactly one window after the transition",
        ),
        pytest.param(
            {"started": ago(60), "ready_since": ago(40)},
            make_sample(1, at=ago(11), window=30),
            UNREADY,
            id="initializing, sample window began before the transition",
        ),
        pytest.param(
            {"started": ago(300), "ready_since": ago(271), "ready": "False"},
            make_sample(1),
            UNREADY,
            id="initialized, unready and never was ready",
        ),
        pytest.param(
            {"started": ago(300), "ready_since": ago(270), "ready": "False"},
            make_sample(1),
            READY,
            id="initialized, unready but was ready before",
        ),
        pytest.param(
            {"started": ago(300), "ready_since": ago(299)},
            make_sample(1, at=ago(299)),
            READY,
            id="initialized and ready",
        ),
        pytest.param({"started": later(60), "ready": "False"}, make_sample(1), UNREADY, id="start time in the future"),
    ],
)
def test_cpu_of_a_pod_counts_only_after_its_startup(parts, sample, group):
    assert group_of(make_pod(**parts), "cpu", sample) == group


@pytest.mark.parametrize("resource", ["memory", "", "cpu2"])
def test_readiness_is_checked_only_for_cpu(resource):
    assert group_of(make_pod(ready=None, started=None), resource) == READY


def test_ready_pods_are_counted_and_the_others_named_in_order():
    pods = (
        make_pod("a"),
        make_pod("b", phase="Pending"),
        make_pod("c"),
        make_pod("d", terminating=True),
        make_pod("e", phase="Pending"),
    )

    assert group_pods(pods, {"a": make_sample(1)}, "", SETTINGS, NOW) == PodGroups(1, ("b", "e"), ("c",), ("d",))


@pytest.mark.parametrize(
    ("parts", "count"),
    [
        pytest.param({}, 1, id="running and ready"),
        pytest.param({"terminating": True}, 1, id="terminating"),
        pytest.param({"ready": "False"}, 0, id="not ready"),
        pytest.param({"ready": "Unknown"}, 0, id="readiness unknown"),
        pytest.param({"ready": None}, 0, id="no Ready condition"),
        pytest.param({"phase": "Pending"}, 0, id="pending"),
    ],
)
def test_count_of_ready_pods(parts, count):
    assert count_ready((make_pod(**parts),)) == count

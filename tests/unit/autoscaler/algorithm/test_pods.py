"""Four piles of pods: ready, unready, missing, ignored."""

import pytest

from autoscaler.algorithm.pods import count_serving, sort_pods
from autoscaler.types.metric_result import PodGroups
from tests.builders import NOW, SETTINGS, ago, later, make_pod, make_sample

READY, UNREADY = PodGroups(1), PodGroups(0, unready=("web-0",))
MISSING, IGNORED = PodGroups(0, missing=("web-0",)), PodGroups(0, ignored=("web-0",))


def sorted_into(pod, resource="cpu", sample=make_sample(100)):  # noqa: B008 - frozen
    return sort_pods((pod,), {} if sample is None else {"web-0": sample}, resource, SETTINGS, NOW)


@pytest.mark.parametrize(
    ("parts", "pile"),
    [
        pytest.param({}, READY, id="a running pod with a number is ready"),
        pytest.param({"terminating": True}, IGNORED, id="a terminating pod is ignored"),
        pytest.param({"phase": "Failed"}, IGNORED, id="a failed pod is ignored"),
        pytest.param({"phase": "Failed", "terminating": True}, IGNORED, id="both is ignored once"),
        pytest.param({"phase": "Pending"}, UNREADY, id="a pending pod is unready although it has a number"),
        pytest.param({"phase": "Succeeded"}, READY, id="a pod that has succeeded is not ignored"),
    ],
)
@pytest.mark.parametrize("resource", ["cpu", "memory", ""])
def test_the_phase_decides_first(parts, pile, resource):
    assert sorted_into(make_pod(**parts), resource) == pile


@pytest.mark.parametrize(
    ("parts", "pile"),
    [
        pytest.param({}, MISSING, id="a running pod without a number is missing"),
        pytest.param({"phase": "Succeeded"}, MISSING, id="so is one that has succeeded"),
        pytest.param({"phase": "Pending"}, UNREADY, id="a pending one is unready"),
        pytest.param({"terminating": True}, IGNORED, id="a terminating one is ignored"),
    ],
)
def test_a_pod_without_a_number(parts, pile):
    assert sorted_into(make_pod(**parts), sample=None) == pile


@pytest.mark.parametrize(
    ("parts", "sample", "pile"),
    [
        pytest.param({"ready": None}, make_sample(1), UNREADY, id="no readiness is known"),
        pytest.param({"started": None}, make_sample(1), UNREADY, id="no start is known"),
        pytest.param({"ready_since": None}, make_sample(1), READY, id="ready since a time that is not known"),
        pytest.param({"ready_since": None, "ready": "False"}, make_sample(1), UNREADY, id="unready for all we know"),
        pytest.param(
            {"started": ago(60), "ready_since": None}, make_sample(1), READY, id="young, ready since an unknown time"
        ),
        pytest.param(
            {"started": ago(299), "ready_since": ago(200)}, make_sample(1), READY, id="young, ready, measured since"
        ),
        pytest.param(
            {"started": ago(299), "ready_since": ago(200), "ready": "False"},
            make_sample(1),
            UNREADY,
            id="young, unready",
        ),
        pytest.param(
            {"started": ago(299), "ready_since": ago(200), "ready": "Unknown"},
            make_sample(1),
            READY,
            id="young, and unknown is not unready",
        ),
        pytest.param(
            {"started": ago(60), "ready_since": ago(40)},
            make_sample(1, at=ago(10), window=30),
            READY,
            id="young, and measured exactly one window after",
        ),
        pytest.param(
            {"started": ago(60), "ready_since": ago(40)},
            make_sample(1, at=ago(11), window=30),
            UNREADY,
            id="young, and measured in part before it was ready",
        ),
        pytest.param(
            {"started": ago(300), "ready_since": ago(271), "ready": "False"},
            make_sample(1),
            UNREADY,
            id="old, unready, and was never ready",
        ),
        pytest.param(
            {"started": ago(300), "ready_since": ago(270), "ready": "False"},
            make_sample(1),
            READY,
            id="old, unready, but was ready once",
        ),
        pytest.param(
            {"started": ago(300), "ready_since": ago(299)}, make_sample(1, at=ago(299)), READY, id="old and ready"
        ),
        pytest.param({"started": later(60), "ready": "False"}, make_sample(1), UNREADY, id="started in the future"),
    ],
)
def test_cpu_of_a_pod_counts_only_when_it_is_that_of_serving(parts, sample, pile):
    assert sorted_into(make_pod(**parts), "cpu", sample) == pile


@pytest.mark.parametrize("resource", ["memory", "", "cpu2"])
def test_for_anything_but_cpu_readiness_does_not_matter(resource):
    assert sorted_into(make_pod(ready=None, started=None), resource) == READY


def test_pods_are_counted_and_named_in_their_order():
    pods = (
        make_pod("a"),
        make_pod("b", phase="Pending"),
        make_pod("c"),
        make_pod("d", terminating=True),
        make_pod("e", phase="Pending"),
    )

    assert sort_pods(pods, {"a": make_sample(1)}, "", SETTINGS, NOW) == PodGroups(1, ("b", "e"), ("c",), ("d",))


@pytest.mark.parametrize(
    ("parts", "count"),
    [
        pytest.param({}, 1, id="runs and is ready"),
        pytest.param({"terminating": True}, 1, id="is terminating, but still serves"),
        pytest.param({"ready": "False"}, 0, id="is not ready"),
        pytest.param({"ready": "Unknown"}, 0, id="may not be ready"),
        pytest.param({"ready": None}, 0, id="never said"),
        pytest.param({"phase": "Pending"}, 0, id="does not run"),
    ],
)
def test_a_pod_serves_if_it(parts, count):
    assert count_serving((make_pod(**parts),)) == count

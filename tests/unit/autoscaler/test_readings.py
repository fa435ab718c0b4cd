"""What the metrics APIs answer becomes a reading."""

from datetime import timedelta

import pytest

from autoscaler.readings import (
    MetricsApi,
    PodUsage,
    PodValue,
    failed,
    read_external,
    read_object,
    read_pods,
    read_resource,
)
from autoscaler.types.observation import (
    ExternalReading,
    FailureClass,
    ObjectReading,
    PodReading,
    PodSample,
    UnavailableReading,
)
from tests.builders import NOW, ago

HALF_MINUTE, MINUTE = timedelta(seconds=30), timedelta(seconds=60)


def usage(pod, containers, at=NOW):
    return PodUsage(pod, containers, at, HALF_MINUTE)


def reading(**milli):
    return PodReading({pod: PodSample(number, NOW, HALF_MINUTE) for pod, number in milli.items()}, NOW)


@pytest.mark.parametrize(
    ("items", "container", "expected"),
    [
        pytest.param(
            [usage("a", {"app": {"cpu": 300}, "side": {"cpu": 50}})], "", reading(a=350), id="containers are summed"
        ),
        pytest.param(
            [usage("a", {"app": {"cpu": 300}, "side": {"cpu": 50}})], "side", reading(a=50), id="or one is read"
        ),
        pytest.param(
            [usage("a", {"app": {"cpu": 300}}), usage("b", {"app": {"cpu": 300}, "side": {"memory": 1}})],
            "",
            reading(a=300),
            id="a pod with a container that was not measured is left out",
        ),
        pytest.param([usage("a", {})], "", reading(), id="a pod without containers is left out"),
        pytest.param(
            [usage("a", {"app": {"cpu": 1}})], "side", reading(), id="a pod without the container is left out"
        ),
        pytest.param([usage("a", {"side": {"memory": 1}})], "side", reading(), id="and one that did not measure it"),
        pytest.param([usage("a", {"app": {"cpu": 0}})], "", reading(a=0), id="zero is a number"),
        pytest.param(
            [usage("a", {"app": {"cpu": 2**63 - 1}, "side": {"cpu": 1}})], "", reading(a=-(2**63)), id="sums wrap"
        ),
    ],
)
def test_a_resource(items, container, expected):
    assert read_resource(items, "cpu", container) == expected


def test_a_reading_has_the_time_of_its_first_pod():
    later_one = usage("b", {"app": {"cpu": 1}})

    assert read_resource([usage("a", {}, at=ago(9)), later_one], "cpu") == PodReading(
        {"b": PodSample(1, NOW, HALF_MINUTE)}, ago(9)
    )


@pytest.mark.parametrize(
    ("window", "taken"),
    [
        pytest.param(HALF_MINUTE, HALF_MINUTE, id="its window is taken"),
        pytest.param(timedelta(0), timedelta(0), id="none at all is a window too"),
        pytest.param(None, MINUTE, id="where it says nothing it is a minute"),
    ],
)
def test_a_metric_of_pods(window, taken):
    assert read_pods([PodValue("a", 5, NOW, window)]) == PodReading({"a": PodSample(5, NOW, taken)}, NOW)


def test_a_metric_of_an_object():
    assert read_object(5, NOW) == ObjectReading(5, NOW)


def test_an_external_metric():
    assert read_external(iter((1, 2)), NOW) == ExternalReading((1, 2), NOW)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(read_resource([], "cpu"), "no metrics returned from resource metrics API", id="resources"),
        pytest.param(read_pods([]), "no metrics returned from custom metrics API", id="custom metrics"),
        pytest.param(read_external([], NOW), "no metrics returned from external metrics API", id="external metrics"),
    ],
)
def test_nothing_is_an_error_and_not_zero(answer, message):
    assert answer == UnavailableReading(message, FailureClass.NO_SERIES)


def test_an_api_that_did_not_answer():
    text = "unable to fetch metrics from external metrics API: timeout"

    assert failed(MetricsApi.EXTERNAL, "timeout") == UnavailableReading(text, FailureClass.API_UNAVAILABLE)
    assert failed(MetricsApi.EXTERNAL, "timeout", FailureClass.TIMED_OUT) == UnavailableReading(
        text, FailureClass.TIMED_OUT
    )

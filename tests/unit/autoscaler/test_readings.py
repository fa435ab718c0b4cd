"""Conversion of metrics API responses to readings."""

from datetime import timedelta

import pytest

from autoscaler.readings import (
    MetricsApi,
    PodUsage,
    PodValue,
    api_failure,
    read_external,
    read_pods,
    read_resource,
)
from autoscaler.types.observation import (
    ExternalReading,
    FailureClass,
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
            [usage("a", {"app": {"cpu": 300}, "side": {"cpu": 50}})], "side", reading(a=50), id="one container"
        ),
        pytest.param(
            [usage("a", {"app": {"cpu": 300}}), usage("b", {"app": {"cpu": 300}, "side": {"memory": 1}})],
            "",
            reading(a=300),
            id="pod with a container without the resource is omitted",
        ),
        pytest.param([usage("a", {})], "", reading(), id="pod without containers is omitted"),
        pytest.param([usage("a", {"app": {"cpu": 1}})], "side", reading(), id="pod without the container is omitted"),
        pytest.param([usage("a", {"side": {"memory": 1}})], "side", reading(), id="container without the resource"),
        pytest.param([usage("a", {"app": {"cpu": 0}})], "", reading(a=0), id="zero is a value"),
        pytest.param(
            [usage("a", {"app": {"cpu": 2**63 - 1}, "side": {"cpu": 1}})],
            "",
            reading(a=-(2**63)),
            id="sum overflows",
        ),
    ],
)
def test_resource_reading(items, container, expected):
    assert read_resource(items, "cpu", container) == expected


def test_reading_has_the_time_of_the_first_pod():
    later_usage = usage("b", {"app": {"cpu": 1}})

    assert read_resource([usage("a", {}, at=ago(9)), later_usage], "cpu") == PodReading(
        {"b": PodSample(1, NOW, HALF_MINUTE)}, ago(9)
    )


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        pytest.param(HALF_MINUTE, HALF_MINUTE, id="window"),
        pytest.param(timedelta(0), timedelta(0), id="zero window"),
        pytest.param(None, MINUTE, id="default of one minute"),
    ],
)
def test_pods_metric_reading(window, expected):
    assert read_pods([PodValue("a", 5, NOW, window)]) == PodReading({"a": PodSample(5, NOW, expected)}, NOW)


def test_external_metric_reading():
    assert read_external(iter((1, 2)), NOW) == ExternalReading((1, 2), NOW)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        pytest.param(read_resource([], "cpu"), "no metrics returned from resource metrics API", id="resources"),
        pytest.param(read_pods([]), "no metrics returned from custom metrics API", id="custom metrics"),
        pytest.param(read_external([], NOW), "no metrics returned from external metrics API", id="external metrics"),
    ],
)
def test_no_items_are_an_error_instead_of_zero(result, message):
    assert result == UnavailableReading(message, FailureClass.NO_SERIES)


def test_failed_request_is_an_unavailable_reading():
    text = "unable to fetch metrics from external metrics API: timeout"

    assert api_failure(MetricsApi.EXTERNAL, "timeout") == UnavailableReading(text, FailureClass.API_UNAVAILABLE)
    assert api_failure(MetricsApi.EXTERNAL, "timeout", FailureClass.TIMED_OUT) == UnavailableReading(
        text, FailureClass.TIMED_OUT
    )

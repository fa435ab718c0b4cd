"""The text of the column TARGETS."""

import pytest

from autoscaler.algorithm.targets import format_targets
from autoscaler.types.observation import ObjectReading
from autoscaler.types.spec import Metric, MetricIdentifier, Spec
from autoscaler.types.status import ExternalMetricStatus, MetricStatus, MetricValue, Status
from autoscaler.values.arithmetic import MIN_INT64
from autoscaler.values.quantity import Quantity
from tests.builders import (
    decide_once,
    external_reading,
    make_container_metric,
    make_external_metric,
    make_object_metric,
    make_observation,
    make_pods,
    make_pods_metric,
    make_resource_metric,
    make_spec,
    pod_reading,
    unavailable_reading,
)

EXTERNAL = make_external_metric(average="30")
USAGE = pod_reading(500, 500, 500)


@pytest.mark.parametrize(
    ("metric", "reading", "expected"),
    [
        pytest.param(EXTERNAL, external_reading(60), "20/30 (avg)", id="external average"),
        pytest.param(make_external_metric(value="30"), external_reading(60), "60/30", id="external value"),
        pytest.param(make_object_metric(), ObjectReading(14_500), "14500m/15", id="object value"),
        pytest.param(make_object_metric(average="15"), ObjectReading(30_000), "10/15 (avg)", id="object average"),
        pytest.param(make_pods_metric(average="2"), USAGE, "500m/2", id="pods"),
        pytest.param(make_resource_metric(utilization=80), USAGE, "cpu: 50%/80%", id="utilization"),
        pytest.param(make_resource_metric(utilization=None, average="2"), USAGE, "cpu: 500m/2", id="resource value"),
        pytest.param(make_container_metric(utilization=80), USAGE, "cpu: 50%/80%", id="container"),
    ],
)
def test_metric_is_shown_with_current_and_target_value(metric, reading, expected):
    spec = make_spec(metric)
    decision = decide_once(spec, make_observation(reading, pods=make_pods(3)))

    assert format_targets(spec, decision.status) == expected
    unknown = format_targets(spec, Status())
    assert unknown == expected.replace(expected.split(": ")[-1].split("/")[0], "<unknown>", 1)


def test_metric_that_cannot_be_read_is_unknown():
    spec = make_spec(EXTERNAL)
    decision = decide_once(spec, make_observation(unavailable_reading()))

    assert format_targets(spec, decision.status) == "<unknown>/30 (avg)"


def test_average_over_zero_replicas_is_unknown():
    spec = make_spec(EXTERNAL)
    average = MetricValue(average_value=Quantity.from_milli(MIN_INT64))
    external = ExternalMetricStatus(metric=MetricIdentifier(name="queue"), current=average)
    status = Status(current_metrics=(MetricStatus(type="External", external=external),))

    assert format_targets(spec, status) == "<unknown>/30 (avg)"


def test_two_metrics_are_shown_and_the_others_counted():
    spec = make_spec(EXTERNAL, EXTERNAL, EXTERNAL, EXTERNAL)
    decision = decide_once(spec, make_observation(*[external_reading(60)] * 4))

    assert format_targets(spec, decision.status) == "20/30 (avg), 20/30 (avg) + 2 more..."


def test_spec_without_usable_metrics_is_shown():
    assert format_targets(make_spec(Metric(type="Cheese")), Status()) == "<unknown type>"
    assert format_targets(Spec(), Status()) == "<none>"

"""From numbers and pods to replicas: the worked examples of the specification, and the edges of the number line."""

import pytest
from msgspec.structs import replace

from autoscaler.algorithm.calculate import (
    NO_KNOWN_PODS,
    NO_METRICS,
    AverageYardstick,
    UtilizationYardstick,
    from_external_average,
    from_object_average,
    from_pods,
    from_total,
    total_of_average_target,
    total_of_value_target,
)
from autoscaler.algorithm.propose import describe, name_of, propose
from autoscaler.settings import FeatureGates
from autoscaler.types.metric_result import Calculation, Incalculable, PodGroups, Rule, Tolerance, Trouble, Unavailable
from autoscaler.types.observation import BadSelector, FailureClass
from autoscaler.types.spec import (
    CONTAINER_RESOURCE,
    EXTERNAL,
    OBJECT,
    PODS,
    RESOURCE,
    ContainerResourceSource,
    ExternalSource,
    Metric,
    MetricIdentifier,
    MetricTarget,
    ObjectReference,
    ObjectSource,
    PodsSource,
    ResourceSource,
)
from autoscaler.types.status import (
    ContainerResourceMetricStatus,
    MetricStatus,
    MetricValue,
    ObjectMetricStatus,
    PodsMetricStatus,
    ResourceMetricStatus,
)
from autoscaler.values.arithmetic import MAX_INT32, MAX_INT64, MIN_INT32, MIN_INT64
from autoscaler.values.quantity import BINARY_SI, Quantity
from tests.builders import (
    REFUSED,
    TENTH,
    external_slot,
    make_container_metric,
    make_external_metric,
    make_object_metric,
    make_pod,
    make_pods,
    make_pods_metric,
    make_resource_metric,
    make_sample,
    make_samples,
    make_scene,
    make_target,
    object_says,
    pods_say,
    queue_of,
    unreadable,
)


def scene_of(pods, replicas=None, status_replicas=None):
    return make_scene(pods=pods, target=make_target(len(pods) if replicas is None else replicas, status_replicas))


PENDING = {"phase": "Pending", "ready": "False"}


@pytest.mark.parametrize(
    ("target", "milli", "pods", "spec_replicas", "expected"),
    [
        pytest.param(30, (300, 500, 700), make_pods(3), 3, (5, 50, 500), id="1: the ratio times the pods, rounded up"),
        pytest.param(50, (559, 559, 559), make_pods(3), 3, (3, 55, 559), id="2: the percentage is truncated first"),
        pytest.param(50, (250, 250, 250), make_pods(4), 4, (4, 25, 250), id="3: a missing pod is busy going down"),
        pytest.param(50, (100, 100, 100), make_pods(4), 4, (3, 10, 100), id="4: a missing pod damps a way down"),
        pytest.param(200, (300, 300, 300), make_pods(4), 4, (2, 30, 300), id="5: it may be as busy as the target asks"),
        pytest.param(50, (900, 900, 900), make_pods(4), 4, (6, 90, 900), id="6: a missing pod is idle going up"),
        pytest.param(50, (600, 600, 600), make_pods(4), 4, (4, 60, 600), id="7: and may keep it from going up"),
        pytest.param(
            50,
            (900, 900),
            (*make_pods(2), make_pod("web-2", **PENDING)),
            3,
            (4, 90, 900),
            id="8: a pending pod is idle going up",
        ),
        pytest.param(
            50,
            (250, 250),
            (*make_pods(2), *(make_pod(f"p{index}", **PENDING) for index in range(8))),
            10,
            (1, 25, 250),
            id="9: pending pods do not count going down",
        ),
        pytest.param(50, (750, 750, 750), make_pods(3), 10, (5, 75, 750), id="10: down although the ratio is above 1"),
        pytest.param(
            50,
            (100,),
            (make_pod("web-0"), make_pod("web-1", phase="Succeeded")),
            2,
            (2, 10, 100),
            id="11: a pod that has succeeded is missing",
        ),
        pytest.param(50, tuple([1100] * 25), make_pods(25), 25, (56, 110, 1100), id="17: floats are not exact"),
    ],
)
def test_utilization(target, milli, pods, spec_replicas, expected):
    verdict = propose(make_resource_metric(utilization=target), pods_say(*milli), scene_of(pods, spec_replicas))

    calculation = verdict.calculation
    assert (verdict.replicas, calculation.utilization, calculation.usage) == expected


def test_utilization_12_a_number_of_an_unknown_pod_counts_as_a_pod():
    reading = replace(pods_say(1500), samples={**make_samples(1500), "ghost": make_sample(5)})

    verdict = propose(make_resource_metric(), reading, scene_of(make_pods(2)))

    assert (verdict.replicas, verdict.calculation.ratio, verdict.calculation.refined_ratio) == (5, 3.0, 1.5)
    assert verdict.calculation.multiplier == 3


@pytest.mark.parametrize(
    ("target", "milli", "pods", "expected"),
    [
        pytest.param("15", (20000, 10000, 30000), make_pods(3), (4, 20000), id="13: the ratio times the pods"),
        pytest.param("10", (2000, 2000), make_pods(3), (2, 2000), id="15: a missing pod is at the target going down"),
        pytest.param("10", (30000, 30000), make_pods(3), (6, 30000), id="16: a missing pod is idle going up"),
    ],
)
def test_averages_of_pods(target, milli, pods, expected):
    verdict = propose(make_pods_metric(average=target), pods_say(*milli), scene_of(pods))

    assert (verdict.replicas, verdict.calculation.usage) == expected


def test_averages_14_the_number_of_an_unknown_pod_counts_but_the_pod_does_not():
    reading = replace(pods_say(10000), samples={**make_samples(10000), "ghost": make_sample(90000)})

    verdict = propose(make_pods_metric(average="10"), reading, scene_of(make_pods(1)))

    assert (verdict.replicas, verdict.calculation.usage) == (5, 50000)


def test_it_multiplies_by_the_ready_pods_not_by_the_size_asked_for():
    """More load than the target asks for, and yet fewer replicas: ten asked for, five there, a ratio of 1.2."""
    verdict = propose(make_resource_metric(), pods_say(*[600] * 5), scene_of(make_pods(5), 10))

    assert (verdict.replicas, verdict.calculation.ratio) == (6, 1.2)


# --- the working of one calculation ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("milli", "groups", "current", "expected"),
    [
        pytest.param(
            (10, 10),
            PodGroups(2),
            7,
            Calculation(7, Rule.WITHIN_TOLERANCE, 10, 10, 1.0, multiplier=2, pods=PodGroups(2)),
            id="within tolerance the size asked for stays",
        ),
        pytest.param(
            (20, 20),
            PodGroups(2),
            7,
            Calculation(4, Rule.READY_PODS, 20, 10, 2.0, multiplier=2, pods=PodGroups(2)),
            id="outside the ratio times the ready pods",
        ),
        pytest.param(
            (30, 30),
            PodGroups(2, missing=("m",)),
            3,
            Calculation(
                6,
                Rule.ASSUMED_PODS,
                30,
                10,
                3.0,
                refined_ratio=2.0,
                multiplier=3,
                pods=PodGroups(2, missing=("m",)),
            ),
            id="with an assumption the ratio is refined",
        ),
        pytest.param(
            (13, 13),
            PodGroups(2, missing=("m",)),
            3,
            Calculation(
                3,
                Rule.WOULD_REVERSE,
                13,
                10,
                1.3,
                refined_ratio=0.8,
                multiplier=3,
                pods=PodGroups(2, missing=("m",)),
            ),
            id="assumptions that turn the direction round change nothing",
        ),
        pytest.param(
            (20, 20),
            PodGroups(2, missing=("m",)),
            9,
            Calculation(
                9,
                Rule.WOULD_REVERSE,
                20,
                10,
                2.0,
                refined_ratio=1.3,
                multiplier=3,
                pods=PodGroups(2, missing=("m",)),
            ),
            id="growing to fewer than asked for changes nothing",
        ),
        pytest.param(
            (2, 2),
            PodGroups(2, missing=("m",)),
            1,
            Calculation(
                1,
                Rule.WOULD_REVERSE,
                2,
                10,
                0.2,
                refined_ratio=0.4,
                multiplier=3,
                pods=PodGroups(2, missing=("m",)),
            ),
            id="shrinking to more than asked for changes nothing",
        ),
        pytest.param(
            (10, 10),
            PodGroups(2, missing=("m",)),
            3,
            Calculation(
                3,
                Rule.WITHIN_TOLERANCE,
                10,
                10,
                1.0,
                refined_ratio=1.0,
                multiplier=2,
                pods=PodGroups(2, missing=("m",)),
            ),
            id="at exactly the target nothing is assumed",
        ),
        pytest.param(
            (5, 5),
            PodGroups(2, unready=("u",)),
            3,
            Calculation(1, Rule.READY_PODS, 5, 10, 0.5, multiplier=2, pods=PodGroups(2, unready=("u",))),
            id="an unready pod does not count going down",
        ),
        pytest.param((), PodGroups(0, unready=("u",)), 3, NO_METRICS, id="no number is left"),
    ],
)
def test_a_calculation_is_told_number_by_number(milli, groups, current, expected):
    assert from_pods(make_samples(*milli), groups, current, TENTH, AverageYardstick(10)) == expected


def test_numbers_of_ignored_and_unready_pods_do_not_count():
    groups = PodGroups(1, unready=("web-1",), ignored=("web-2",))

    result = from_pods(make_samples(5, 999, 999), groups, 3, TENTH, AverageYardstick(10))

    assert (result.replicas, result.usage) == (1, 5)


@pytest.mark.parametrize(
    ("requests", "missing"),
    [
        pytest.param({}, (), id="no pod is known"),
        pytest.param({"web-0": 0}, (), id="those that are known request nothing"),
        pytest.param({"web-0": 2**62, "a": 2**62, "b": 2**62, "c": 2**62}, ("a", "b", "c"), id="requests wrap to zero"),
    ],
)
def test_without_requests_there_is_no_utilization(requests, missing):
    groups = PodGroups(1, missing=missing)

    assert from_pods(make_samples(5), groups, 3, TENTH, UtilizationYardstick(50, requests)) == NO_KNOWN_PODS


# --- one number for the whole workload -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "reading", "pods", "expected"),
    [
        pytest.param("4.4", (8.6,), make_pods(3), (6, 8600), id="the ratio times the ready pods"),
        pytest.param("5", (1, 2, 3.5), make_pods(3), (4, 6500), id="series are summed"),
        pytest.param("4.4", (8.6,), (), (2, 8600), id="from zero the ratio is rounded up"),
        pytest.param("4.4", (4.4,), (), (1, 4400), id="from zero one is enough"),
        pytest.param("4.4", (0,), (), (0, 0), id="from zero nothing asks for nothing"),
        pytest.param("5", (-1,), make_pods(3), (0, -1000), id="below zero is nothing"),
        pytest.param(
            "5",
            (100,),
            tuple(make_pod(f"p{index}", ready="False") for index in range(4)),
            (0, 100000),
            id="with no pod ready it asks for none",
        ),
        pytest.param("5", (5.5,), make_pods(3), (3, 5500), id="the edge of the tolerance belongs to it"),
    ],
)
def test_external_values(metric, reading, pods, expected):
    verdict = propose(make_external_metric(value=metric), queue_of(*reading), scene_of(pods))

    assert (max(verdict.replicas, 0), verdict.calculation.usage) == expected


def test_an_object_value():
    metric = make_object_metric()

    verdict = propose(metric, object_says(20), scene_of(make_pods(3)))

    slot = ObjectMetricStatus(
        MetricIdentifier("requests"),
        MetricValue(value=Quantity.parse("20")),
        ObjectReference("Ingress", "front", "networking.k8s.io/v1"),
    )
    assert (verdict.replicas, verdict.status) == (4, MetricStatus(type=OBJECT, object=slot))


@pytest.mark.parametrize(
    ("metric", "reading", "replicas", "status_replicas", "expected"),
    [
        pytest.param("4.4", 13.2, 3, 3, (3, 4400), id="at the target"),
        pytest.param("4.4", 10, 3, 3, (3, 3334), id="rounded up"),
        pytest.param("5", 30, 10, 6, (6, 5000), id="the size it has counts, not the size asked for"),
        pytest.param("5", 12, 0, 0, (3, MIN_INT64), id="from zero the average is the smallest number"),
        pytest.param("5", -1, 3, 3, (MAX_INT32, MAX_INT64), id="below zero is taken for an overflow"),
    ],
)
def test_external_averages(metric, reading, replicas, status_replicas, expected):
    scene = scene_of((), replicas, status_replicas)

    verdict = propose(make_external_metric(average=metric), queue_of(reading), scene)

    assert (verdict.replicas, verdict.calculation.usage) == expected


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(31.5, (7, 10500), id="rounded up"),
        pytest.param(20, (4, 6667), id="with a fraction in the average"),
        pytest.param(15, (3, 5000), id="at the target"),
    ],
)
def test_object_averages(usage, expected):
    verdict = propose(make_object_metric(average="5"), object_says(usage), scene_of((), 3))

    assert (verdict.replicas, verdict.calculation.usage) == expected


@pytest.mark.parametrize(
    ("result", "replicas"),
    [
        pytest.param(from_total(MAX_INT64, 1, 0, TENTH, ()), MIN_INT32, id="a value from zero has no cap"),
        pytest.param(from_total(MAX_INT64, 1, 1, TENTH, make_pods(1)), MAX_INT32, id="a value has one"),
        pytest.param(from_external_average(MAX_INT64, 1, 1, TENTH), MAX_INT32, id="an external average has one"),
        pytest.param(from_object_average(MAX_INT64, 1, 1, TENTH), MIN_INT32, id="an object's average has none"),
        pytest.param(from_object_average(0, 5, 0, TENTH), 0, id="nothing of nothing is outside any tolerance"),
    ],
)
def test_numbers_out_of_range(result, replicas):
    assert result.replicas == replicas


@pytest.mark.parametrize(
    ("values", "of_value", "of_average"),
    [
        pytest.param((1, 2, 3), 6, 6, id="an ordinary sum"),
        pytest.param((MAX_INT64, 1, -5), MAX_INT64, MAX_INT64, id="an overflow stays at the top"),
        pytest.param((5, -6, 7), 6, MAX_INT64, id="a sum that was below zero is an overflow for averages only"),
        pytest.param((MIN_INT64, -1), MAX_INT64, MAX_INT64, id="an overflow downwards wraps"),
    ],
)
def test_series_are_summed_in_two_ways(values, of_value, of_average):
    assert (total_of_value_target(values), total_of_average_target(values)) == (of_value, of_average)


@pytest.mark.parametrize(
    ("ratio", "covered"),
    [
        pytest.param(0.9, True, id="the lower edge"),
        pytest.param(1.1, True, id="the upper edge"),
        pytest.param(0.89, False, id="below"),
        pytest.param(1.11, False, id="above"),
        pytest.param(float("nan"), False, id="not a number"),
    ],
)
def test_a_tolerance_includes_its_edges(ratio, covered):
    assert Tolerance(0.1, 0.1).covers(ratio) is covered


# --- why a metric has no say -----------------------------------------------------------------------------------------

NO_PODS = "no pods returned by selector while calculating replica count"
NO_TARGET = (
    "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"
)
NEITHER = "neither a value target nor an average value target was set"
REFUSAL = unreadable()
RETRIEVAL = (Trouble.RETRIEVAL, FailureClass.REFUSED)
OF_PODS = (Trouble.PODS, None)
OF_SPEC = (Trouble.SPEC, None)


@pytest.mark.parametrize(
    ("metric", "reading", "pods", "reason", "message", "wrapped", "trouble"),
    [
        pytest.param(
            make_resource_metric(),
            REFUSAL,
            make_pods(1),
            "FailedGetResourceMetric",
            f"failed to get cpu utilization: unable to get metrics for resource cpu: {REFUSED}",
            "failed to get cpu resource metric value: {}",
            RETRIEVAL,
            id="a resource that cannot be read",
        ),
        pytest.param(
            make_resource_metric(average="1"),
            pods_say(1),
            (),
            "FailedGetResourceMetric",
            f"failed to get cpu usage: {NO_PODS}",
            "failed to get cpu resource metric value: {}",
            OF_PODS,
            id="a resource without pods",
        ),
        pytest.param(
            make_resource_metric(),
            pods_say(1),
            (),
            "FailedGetResourceMetric",
            f"failed to get cpu utilization: {NO_PODS}",
            "failed to get cpu resource metric value: {}",
            OF_PODS,
            id="a utilization without pods",
        ),
        pytest.param(
            make_resource_metric(average="1"),
            pods_say(1),
            (make_pod(**PENDING),),
            "FailedGetResourceMetric",
            f"failed to get cpu usage: {NO_METRICS.message}",
            "failed to get cpu resource metric value: {}",
            OF_PODS,
            id="a resource of pods that are not ready",
        ),
        pytest.param(
            make_resource_metric(),
            pods_say(1),
            (make_pod(**PENDING, containers=()),),
            "FailedGetResourceMetric",
            f"failed to get cpu utilization: {NO_METRICS.message}",
            "failed to get cpu resource metric value: {}",
            OF_PODS,
            id="a utilization of pods that are not ready",
        ),
        pytest.param(
            make_resource_metric("gpu"),
            pods_say(1),
            make_pods(1),
            "FailedGetResourceMetric",
            "failed to get gpu utilization: missing request for gpu in container app of Pod web-0",
            "failed to get gpu resource metric value: {}",
            OF_PODS,
            id="a utilization of what is not requested",
        ),
        pytest.param(
            make_resource_metric(utilization=None),
            pods_say(1),
            make_pods(1),
            "FailedGetResourceMetric",
            NO_TARGET,
            "failed to get cpu resource metric value: {}",
            OF_SPEC,
            id="a resource without target",
        ),
        pytest.param(
            make_container_metric(container="side"),
            pods_say(1),
            make_pods(1),
            "FailedGetContainerResourceMetric",
            "failed to get cpu utilization: container side not found in Pod web-0",
            "failed to get side container metric value: {}",
            OF_PODS,
            id="a container that is not there",
        ),
        pytest.param(
            make_pods_metric(),
            REFUSAL,
            make_pods(1),
            "FailedGetPodsMetric",
            f"unable to get metric rps: {REFUSED}",
            "failed to get pods metric value: {}",
            RETRIEVAL,
            id="a metric of pods that cannot be read",
        ),
        pytest.param(
            make_pods_metric(),
            pods_say(1),
            (),
            "FailedGetPodsMetric",
            NO_PODS,
            "failed to get pods metric value: {}",
            OF_PODS,
            id="a metric of pods without pods",
        ),
        pytest.param(
            Metric(type=PODS, pods=PodsSource(MetricIdentifier("rps"))),
            pods_say(1),
            make_pods(1),
            "FailedGetPodsMetric",
            "invalid pods metric source: no average value target was set",
            "failed to get pods metric value: {}",
            OF_SPEC,
            id="a metric of pods without target",
        ),
        pytest.param(
            make_object_metric(),
            REFUSAL,
            make_pods(1),
            "FailedGetObjectMetric",
            f"unable to get metric requests on Ingress shop/front: {REFUSED}",
            "failed to get object metric value: {}",
            RETRIEVAL,
            id="an object's value that cannot be read",
        ),
        pytest.param(
            make_object_metric(average="5"),
            REFUSAL,
            make_pods(1),
            "FailedGetObjectMetric",
            f"unable to get metric requests on Ingress shop/front: {REFUSED}",
            "failed to get object metric value: failed to get requests object metric: {}",
            RETRIEVAL,
            id="an object's average that cannot be read",
        ),
        pytest.param(
            make_object_metric(value=None),
            object_says(1),
            make_pods(1),
            "FailedGetObjectMetric",
            f"invalid object metric source: {NEITHER}",
            "failed to get object metric value: {}",
            OF_SPEC,
            id="an object without target",
        ),
        pytest.param(
            make_object_metric(value=None),
            BadSelector("bad"),
            make_pods(1),
            "FailedGetObjectMetric",
            "bad",
            "failed to get object metric value: {}",
            OF_SPEC,
            id="an object with neither a sound selector nor a target",
        ),
        pytest.param(
            Metric(
                type=OBJECT, object=ObjectSource(ObjectReference(), MetricTarget("Utilization"), MetricIdentifier("m"))
            ),
            object_says(1),
            make_pods(1),
            "FailedGetObjectMetric",
            f"invalid object metric source: {NEITHER}",
            "failed to get object metric value: {}",
            OF_SPEC,
            id="an object with a target of another type",
        ),
        pytest.param(
            make_external_metric(value="5"),
            REFUSAL,
            make_pods(1),
            "FailedGetExternalMetric",
            f"unable to get external metric shop/queue_depth/nil: {REFUSED}",
            "failed to get queue_depth external metric value: failed to get external metric queue_depth: {}",
            RETRIEVAL,
            id="an external value that cannot be read",
        ),
        pytest.param(
            make_external_metric(value="5"),
            queue_of(50),
            (),
            "FailedGetExternalMetric",
            f"unable to calculate ready pods: {NO_PODS}",
            "failed to get queue_depth external metric value: failed to get external metric queue_depth: {}",
            OF_PODS,
            id="an external value without pods",
        ),
        pytest.param(
            make_external_metric(average=None),
            queue_of(50),
            make_pods(1),
            "FailedGetExternalMetric",
            f"invalid external metric source: {NEITHER}",
            "failed to get queue_depth external metric value: {}",
            OF_SPEC,
            id="an external metric without target",
        ),
    ],
)
def test_a_metric_that_has_no_say_says_why(metric, reading, pods, reason, message, wrapped, trouble):
    verdict = propose(metric, reading, scene_of(pods, 1))

    assert verdict == Unavailable(reason, message, wrapped.format(message), *trouble)


@pytest.mark.parametrize("kind", [RESOURCE, CONTAINER_RESOURCE, PODS, OBJECT, EXTERNAL, "Weather"])
def test_a_type_without_its_source_is_unknown(kind):
    message = f'unknown metric source type "{kind}"'

    assert propose(Metric(type=kind), REFUSAL, make_scene()) == Unavailable(
        "InvalidMetricSourceType", message, message, Trouble.SPEC
    )
    assert describe(Metric(type=kind)) == f"metric of unknown type {kind}"
    assert name_of(Metric(type=kind)) == kind


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "description", "name"),
    [
        pytest.param(
            make_resource_metric(), "cpu resource utilization (percentage of request)", "cpu", id="a utilization"
        ),
        pytest.param(make_resource_metric(average="1"), "cpu resource", "cpu", id="a resource's value"),
        pytest.param(
            make_container_metric(),
            "cpu container resource utilization (percentage of request)",
            "cpu",
            id="a container's utilization",
        ),
        pytest.param(make_container_metric(average="1"), "cpu resource", "cpu", id="a container's value"),
        pytest.param(make_pods_metric(), "pods metric rps", "rps", id="a metric of pods"),
        pytest.param(make_object_metric(), "Ingress metric requests", "requests", id="an object's value"),
        pytest.param(
            make_object_metric(average="5"),
            "external metric requests(nil)",
            "requests",
            id="an object's average really is called external",
        ),
        pytest.param(
            make_external_metric(selector={"b": "2", "a": "1"}),
            (
                "external metric queue_depth(&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},"
                "MatchExpressions:[]LabelSelectorRequirement{},})"
            ),
            "queue_depth",
            id="an external metric with its selector",
        ),
    ],
)
def test_a_metric_is_named_as_kubernetes_names_it(metric, description, name):
    assert (describe(metric), name_of(metric)) == (description, name)


# --- what status shows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "milli", "slot"),
    [
        pytest.param(
            make_resource_metric(),
            500,
            MetricStatus(
                type=RESOURCE,
                resource=ResourceMetricStatus(
                    "cpu", MetricValue(average_value=Quantity.parse("500m"), average_utilization=50)
                ),
            ),
            id="cpu",
        ),
        pytest.param(
            make_resource_metric("memory", average="1Gi"),
            1024**2 * 1000,
            MetricStatus(
                type=RESOURCE,
                resource=ResourceMetricStatus(
                    "memory", MetricValue(average_value=Quantity.from_milli(1024**2 * 1000, BINARY_SI))
                ),
            ),
            id="memory in powers of 1024",
        ),
        pytest.param(
            make_container_metric(average="1"),
            500,
            MetricStatus(
                type=CONTAINER_RESOURCE,
                container_resource=ContainerResourceMetricStatus(
                    "cpu", MetricValue(average_value=Quantity.parse("500m")), "app"
                ),
            ),
            id="a container's cpu",
        ),
        pytest.param(
            make_pods_metric(),
            500,
            MetricStatus(
                type=PODS,
                pods=PodsMetricStatus(MetricIdentifier("rps"), MetricValue(average_value=Quantity.parse("500m"))),
            ),
            id="a metric of pods",
        ),
    ],
)
def test_status_shows_the_average_of_a_pod(metric, milli, slot):
    verdict = propose(metric, pods_say(milli), scene_of(make_pods(1)))

    assert (verdict.status, str(verdict.status)) == (slot, str(slot))


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        pytest.param(make_external_metric(), MetricValue(average_value=Quantity.parse("4")), id="an average"),
        pytest.param(make_external_metric(value="5"), MetricValue(value=Quantity.parse("12")), id="a value"),
    ],
)
def test_status_shows_an_external_metric_in_the_field_of_its_target(metric, value):
    verdict = propose(metric, queue_of(5, 7), scene_of(make_pods(3)))

    assert verdict.status == external_slot(current=value)


def test_an_average_target_wins_over_a_utilization_whatever_the_type_says():
    target = MetricTarget("Utilization", average_value=Quantity.parse("1"), average_utilization=1)
    metric = Metric(type=RESOURCE, resource=ResourceSource("cpu", target))

    assert propose(metric, pods_say(1000), scene_of(make_pods(1))).calculation.rule is Rule.WITHIN_TOLERANCE


def test_an_average_target_wins_over_a_value_whatever_the_type_says():
    target = MetricTarget("Value", value=Quantity.parse("1"), average_value=Quantity.parse("5"))
    metric = Metric(type=EXTERNAL, external=ExternalSource(MetricIdentifier("q"), target))

    assert propose(metric, queue_of(50), make_scene()).replicas == 10


def test_pod_level_requests_count_only_with_their_gate():
    pod = make_pod(requests={"cpu": Quantity.parse("2")})
    source = ContainerResourceSource("cpu", MetricTarget("Utilization", average_utilization=50), "app")

    def utilization(metric, **gates):
        scene = make_scene(pods=(pod,), gates=FeatureGates(**gates))
        return propose(metric, pods_say(1000), scene).calculation.utilization

    assert utilization(make_resource_metric()) == 50
    assert utilization(make_resource_metric(), PodLevelResources=False) == 100
    assert utilization(Metric(type=CONTAINER_RESOURCE, container_resource=source)) == 100


@pytest.mark.parametrize("average_of", [from_external_average, from_object_average])
def test_with_no_pod_to_share_it_the_ratio_is_told_as_if_there_were_one(average_of):
    assert average_of(12000, 5000, 0, TENTH) == Calculation(3, Rule.TOTAL, MIN_INT64, 5000, 2.4)
    assert average_of(0, 5000, 0, TENTH) == Calculation(0, Rule.TOTAL, MIN_INT64, 5000, 0.0)


def test_an_incalculable_says_why():
    assert from_total(100, 5, 3, TENTH, ()) == Incalculable(f"unable to calculate ready pods: {NO_PODS}")

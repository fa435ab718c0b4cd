"""Replica calculation per metric type: worked examples, limits of integers, failures and status values."""

import pytest
from msgspec.structs import replace

from autoscaler.algorithm.calculate import (
    NO_KNOWN_PODS,
    NO_METRICS,
    AverageValueTarget,
    UtilizationTarget,
    from_average,
    from_pods,
    from_total,
    total_of_average_target,
    total_of_value_target,
)
from autoscaler.algorithm.propose import describe, name_of, propose
from autoscaler.settings import FeatureGates
from autoscaler.types.metric_result import (
    Calculation,
    CalculationFailure,
    CalculationRule,
    PodGroups,
    Tolerance,
    UnavailableCause,
    UnavailableMetric,
)
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
    CONNECTION_REFUSED,
    TOLERANCE,
    external_reading,
    external_status,
    make_container_metric,
    make_external_metric,
    make_metric_context,
    make_object_metric,
    make_pod,
    make_pods,
    make_pods_metric,
    make_resource_metric,
    make_sample,
    make_samples,
    make_target,
    object_reading,
    pod_reading,
    proposal_of,
    unavailable_reading,
)


def context_of(pods, replicas=None, status_replicas=None):
    return make_metric_context(
        pods=pods, target=make_target(len(pods) if replicas is None else replicas, status_replicas)
    )


PENDING = {"phase": "Pending", "ready": "False"}


@pytest.mark.parametrize(
    ("target", "milli", "pods", "spec_replicas", "expected"),
    [
        pytest.param(30, (300, 500, 700), make_pods(3), 3, (5, 50, 500), id="1: ratio times pods, rounded up"),
        pytest.param(50, (559, 559, 559), make_pods(3), 3, (3, 55, 559), id="2: percentage is truncated first"),
        pytest.param(
            50,
            (250, 250, 250),
            make_pods(4),
            4,
            (4, 25, 250),
            id="3: missing pod assumed at its request when scaling down",
        ),
        pytest.param(50, (100, 100, 100), make_pods(4), 4, (3, 10, 100), id="4: missing pod dampens a scale down"),
        pytest.param(
            200, (300, 300, 300), make_pods(4), 4, (2, 30, 300), id="5: missing pod assumed at a target above 100 %"
        ),
        pytest.param(
            50, (900, 900, 900), make_pods(4), 4, (6, 90, 900), id="6: missing pod assumed at 0 when scaling up"
        ),
        pytest.param(50, (600, 600, 600), make_pods(4), 4, (4, 60, 600), id="7: missing pod prevents a scale up"),
        pytest.param(
            50,
            (900, 900),
            (*make_pods(2), make_pod("web-2", **PENDING)),
            3,
            (4, 90, 900),
            id="8: pending pod assumed at 0 when scaling up",
        ),
        pytest.param(
            50,
            (250, 250),
            (*make_pods(2), *(make_pod(f"p{index}", **PENDING) for index in range(8))),
            10,
            (1, 25, 250),
            id="9: pending pods do not count when scaling down",
        ),
        pytest.param(
            50, (750, 750, 750), make_pods(3), 10, (5, 75, 750), id="10: fewer replicas although the ratio is above 1"
        ),
        pytest.param(
            50,
            (100,),
            (make_pod("web-0"), make_pod("web-1", phase="Succeeded")),
            2,
            (2, 10, 100),
            id="11: succeeded pod is missing",
        ),
        pytest.param(50, tuple([1100] * 25), make_pods(25), 25, (56, 110, 1100), id="17: float rounding error is kept"),
    ],
)
def test_utilization_examples(target, milli, pods, spec_replicas, expected):
    result = proposal_of(make_resource_metric(utilization=target), pod_reading(*milli), context_of(pods, spec_replicas))

    calculation = result.calculation
    assert (result.replicas, calculation.utilization, calculation.usage) == expected


def test_utilization_example_12_sample_of_an_unlisted_pod_counts_as_a_pod():
    reading = replace(pod_reading(1500), samples={**make_samples(1500), "ghost": make_sample(5)})

    result = proposal_of(make_resource_metric(), reading, context_of(make_pods(2)))

    assert (result.replicas, result.calculation.ratio, result.calculation.refined_ratio) == (5, 3.0, 1.5)
    assert result.calculation.multiplier == 3


@pytest.mark.parametrize(
    ("target", "milli", "pods", "expected"),
    [
        pytest.param("15", (20000, 10000, 30000), make_pods(3), (4, 20000), id="13: ratio times pods"),
        pytest.param(
            "10", (2000, 2000), make_pods(3), (2, 2000), id="15: missing pod assumed at the target when scaling down"
        ),
        pytest.param("10", (30000, 30000), make_pods(3), (6, 30000), id="16: missing pod assumed at 0 when scaling up"),
    ],
)
def test_pod_average_examples(target, milli, pods, expected):
    result = proposal_of(make_pods_metric(average=target), pod_reading(*milli), context_of(pods))

    assert (result.replicas, result.calculation.usage) == expected


def test_pod_average_example_14_sample_of_an_unlisted_pod_counts_in_the_average_only():
    reading = replace(pod_reading(10000), samples={**make_samples(10000), "ghost": make_sample(90000)})

    result = proposal_of(make_pods_metric(average="10"), reading, context_of(make_pods(1)))

    assert (result.replicas, result.calculation.usage) == (5, 50000)


def test_ratio_is_multiplied_by_ready_pods_and_not_by_spec_replicas():
    result = proposal_of(make_resource_metric(), pod_reading(*[600] * 5), context_of(make_pods(5), 10))

    assert (result.replicas, result.calculation.ratio) == (6, 1.2)


# --- calculation ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("milli", "groups", "current", "expected"),
    [
        pytest.param(
            (10, 10),
            PodGroups(2),
            7,
            Calculation(7, CalculationRule.WITHIN_TOLERANCE, 10, 10, 1.0, multiplier=2, pods=PodGroups(2)),
            id="within tolerance spec replicas are kept",
        ),
        pytest.param(
            (20, 20),
            PodGroups(2),
            7,
            Calculation(4, CalculationRule.READY_PODS, 20, 10, 2.0, multiplier=2, pods=PodGroups(2)),
            id="outside tolerance ratio times ready pods",
        ),
        pytest.param(
            (30, 30),
            PodGroups(2, missing=("m",)),
            3,
            Calculation(
                6,
                CalculationRule.ASSUMED_PODS,
                30,
                10,
                3.0,
                refined_ratio=2.0,
                multiplier=3,
                pods=PodGroups(2, missing=("m",)),
            ),
            id="assumed value refines the ratio",
        ),
        pytest.param(
            (13, 13),
            PodGroups(2, missing=("m",)),
            3,
            Calculation(
                3,
                CalculationRule.DIRECTION_REVERSED,
                13,
                10,
                1.3,
                refined_ratio=0.8,
                multiplier=3,
                pods=PodGroups(2, missing=("m",)),
            ),
            id="assumed value reverses the direction",
        ),
        pytest.param(
            (20, 20),
            PodGroups(2, missing=("m",)),
            9,
            Calculation(
                9,
                CalculationRule.DIRECTION_REVERSED,
                20,
                10,
                2.0,
                refined_ratio=1.3,
                multiplier=3,
                pods=PodGroups(2, missing=("m",)),
            ),
            id="scale up to fewer than the current replicas",
        ),
        pytest.param(
            (2, 2),
            PodGroups(2, missing=("m",)),
            1,
            Calculation(
                1,
                CalculationRule.DIRECTION_REVERSED,
                2,
                10,
                0.2,
                refined_ratio=0.4,
                multiplier=3,
                pods=PodGroups(2, missing=("m",)),
            ),
            id="scale down to more than the current replicas",
        ),
        pytest.param(
            (10, 10),
            PodGroups(2, missing=("m",)),
            3,
            Calculation(
                3,
                CalculationRule.WITHIN_TOLERANCE,
                10,
                10,
                1.0,
                refined_ratio=1.0,
                multiplier=2,
                pods=PodGroups(2, missing=("m",)),
            ),
            id="no assumed values at exactly the target",
        ),
        pytest.param(
            (5, 5),
            PodGroups(2, unready=("u",)),
            3,
            Calculation(1, CalculationRule.READY_PODS, 5, 10, 0.5, multiplier=2, pods=PodGroups(2, unready=("u",))),
            id="unready pod does not count when scaling down",
        ),
        pytest.param((), PodGroups(0, unready=("u",)), 3, NO_METRICS, id="no samples left"),
    ],
)
def test_calculation_from_pods_records_its_inputs(milli, groups, current, expected):
    assert from_pods(make_samples(*milli), groups, current, TOLERANCE, AverageValueTarget(10)) == expected


def test_samples_of_ignored_and_unready_pods_do_not_count():
    groups = PodGroups(1, unready=("web-1",), ignored=("web-2",))

    result = from_pods(make_samples(5, 999, 999), groups, 3, TOLERANCE, AverageValueTarget(10))

    assert isinstance(result, Calculation)
    assert (result.replicas, result.usage) == (1, 5)


@pytest.mark.parametrize(
    ("requests", "missing"),
    [
        pytest.param({}, (), id="no requests"),
        pytest.param({"web-0": 0}, (), id="requests of 0"),
        pytest.param(
            {"web-0": 2**62, "a": 2**62, "b": 2**62, "c": 2**62}, ("a", "b", "c"), id="requests overflow to 0"
        ),
    ],
)
def test_utilization_without_requests_fails(requests, missing):
    groups = PodGroups(1, missing=missing)

    assert from_pods(make_samples(5), groups, 3, TOLERANCE, UtilizationTarget(50, requests)) == NO_KNOWN_PODS


# --- one value for the whole workload -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "reading", "pods", "expected"),
    [
        pytest.param("4.4", (8.6,), make_pods(3), (6, 8600), id="ratio times ready pods"),
        pytest.param("5", (1, 2, 3.5), make_pods(3), (4, 6500), id="series are summed"),
        pytest.param("4.4", (8.6,), (), (2, 8600), id="from zero: ratio rounded up"),
        pytest.param("4.4", (4.4,), (), (1, 4400), id="from zero: ratio of 1"),
        pytest.param("4.4", (0,), (), (0, 0), id="from zero: value of 0"),
        pytest.param("5", (-1,), make_pods(3), (0, -1000), id="negative value"),
        pytest.param(
            "5",
            (100,),
            tuple(make_pod(f"p{index}", ready="False") for index in range(4)),
            (0, 100000),
            id="no ready pods",
        ),
        pytest.param("5", (5.5,), make_pods(3), (3, 5500), id="exactly at the tolerance"),
    ],
)
def test_external_value_target(metric, reading, pods, expected):
    result = proposal_of(make_external_metric(value=metric), external_reading(*reading), context_of(pods))

    assert (max(result.replicas, 0), result.calculation.usage) == expected


def test_object_value_target():
    metric = make_object_metric()

    result = proposal_of(metric, object_reading(20), context_of(make_pods(3)))

    status = ObjectMetricStatus(
        MetricIdentifier("requests"),
        MetricValue(value=Quantity.parse("20")),
        ObjectReference("Ingress", "front", "networking.k8s.io/v1"),
    )
    assert (result.replicas, result.status) == (4, MetricStatus(type=OBJECT, object=status))


@pytest.mark.parametrize(
    ("metric", "reading", "replicas", "status_replicas", "expected"),
    [
        pytest.param("4.4", 13.2, 3, 3, (3, 4400), id="at the target"),
        pytest.param("4.4", 10, 3, 3, (3, 3334), id="rounded up"),
        pytest.param("5", 30, 10, 6, (6, 5000), id="status replicas are used instead of spec replicas"),
        pytest.param("5", 12, 0, 0, (3, MIN_INT64), id="from zero: average is the smallest int64"),
        pytest.param("5", -1, 3, 3, (MAX_INT32, MAX_INT64), id="negative value is treated as overflow"),
    ],
)
def test_external_average_target(metric, reading, replicas, status_replicas, expected):
    context = context_of((), replicas, status_replicas)

    result = proposal_of(make_external_metric(average=metric), external_reading(reading), context)

    assert (result.replicas, result.calculation.usage) == expected


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(31.5, (7, 10500), id="rounded up"),
        pytest.param(20, (4, 6667), id="average with a fraction"),
        pytest.param(15, (3, 5000), id="at the target"),
    ],
)
def test_object_average_target(usage, expected):
    result = proposal_of(make_object_metric(average="5"), object_reading(usage), context_of((), 3))

    assert (result.replicas, result.calculation.usage) == expected


@pytest.mark.parametrize(
    ("result", "replicas"),
    [
        pytest.param(from_total(MAX_INT64, 1, 0, TOLERANCE, ()), MIN_INT32, id="value target from zero is not capped"),
        pytest.param(from_total(MAX_INT64, 1, 1, TOLERANCE, make_pods(1)), MAX_INT32, id="value target is capped"),
        pytest.param(
            from_average(MAX_INT64, 1, 1, TOLERANCE, caps_overflow=True),
            MAX_INT32,
            id="external average target is capped",
        ),
        pytest.param(
            from_average(MAX_INT64, 1, 1, TOLERANCE, caps_overflow=False),
            MIN_INT32,
            id="object average target is not capped",
        ),
        pytest.param(from_average(0, 5, 0, TOLERANCE, caps_overflow=False), 0, id="0 of 0 is outside the tolerance"),
    ],
)
def test_results_out_of_range(result, replicas):
    assert result.replicas == replicas


@pytest.mark.parametrize(
    ("values", "of_value", "of_average"),
    [
        pytest.param((1, 2, 3), 6, 6, id="sum"),
        pytest.param((MAX_INT64, 1, -5), MAX_INT64, MAX_INT64, id="overflow is capped"),
        pytest.param((5, -6, 7), 6, MAX_INT64, id="negative intermediate sum is an overflow for averages only"),
        pytest.param((MIN_INT64, -1), MAX_INT64, MAX_INT64, id="negative overflow wraps"),
    ],
)
def test_sums_of_series_differ_between_value_and_average_targets(values, of_value, of_average):
    assert (total_of_value_target(values), total_of_average_target(values)) == (of_value, of_average)


@pytest.mark.parametrize(
    ("ratio", "covered"),
    [
        pytest.param(0.9, True, id="lower limit"),
        pytest.param(1.1, True, id="upper limit"),
        pytest.param(0.89, False, id="below"),
        pytest.param(1.11, False, id="above"),
        pytest.param(float("nan"), False, id="NaN"),
    ],
)
def test_tolerance_includes_its_limits(ratio, covered):
    assert Tolerance(0.1, 0.1).covers(ratio) is covered


# --- unavailable metrics -----------------------------------------------------------------------------------------

NO_PODS = "no pods returned by selector while calculating replica count"
NO_TARGET = (
    "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"
)
NEITHER = "neither a value target nor an average value target was set"
UNAVAILABLE = unavailable_reading()
RETRIEVAL = (UnavailableCause.RETRIEVAL, FailureClass.REFUSED)
OF_PODS = (UnavailableCause.PODS, None)
OF_SPEC = (UnavailableCause.SPEC, None)


@pytest.mark.parametrize(
    ("metric", "reading", "pods", "reason", "message", "error", "cause"),
    [
        pytest.param(
            make_resource_metric(),
            UNAVAILABLE,
            make_pods(1),
            "FailedGetResourceMetric",
            f"failed to get cpu utilization: unable to get metrics for resource cpu: {CONNECTION_REFUSED}",
            "failed to get cpu resource metric value: {}",
            RETRIEVAL,
            id="resource cannot be read",
        ),
        pytest.param(
            make_resource_metric(average="1"),
            pod_reading(1),
            (),
            "FailedGetResourceMetric",
            f"failed to get cpu usage: {NO_PODS}",
            "failed to get cpu resource metric value: {}",
            OF_PODS,
            id="resource value without pods",
        ),
        pytest.param(
            make_resource_metric(),
            pod_reading(1),
            (),
            "FailedGetResourceMetric",
            f"failed to get cpu utilization: {NO_PODS}",
            "failed to get cpu resource metric value: {}",
            OF_PODS,
            id="utilization without pods",
        ),
        pytest.param(
            make_resource_metric(average="1"),
            pod_reading(1),
            (make_pod(**PENDING),),
            "FailedGetResourceMetric",
            f"failed to get cpu usage: {NO_METRICS.message}",
            "failed to get cpu resource metric value: {}",
            OF_PODS,
            id="resource value without ready pods",
        ),
        pytest.param(
            make_resource_metric(),
            pod_reading(1),
            (make_pod(**PENDING, containers=()),),
            "FailedGetResourceMetric",
            f"failed to get cpu utilization: {NO_METRICS.message}",
            "failed to get cpu resource metric value: {}",
            OF_PODS,
            id="utilization without ready pods",
        ),
        pytest.param(
            make_resource_metric("gpu"),
            pod_reading(1),
            make_pods(1),
            "FailedGetResourceMetric",
            "failed to get gpu utilization: missing request for gpu in container app of Pod web-0",
            "failed to get gpu resource metric value: {}",
            OF_PODS,
            id="utilization without requests",
        ),
        pytest.param(
            make_resource_metric(utilization=None),
            pod_reading(1),
            make_pods(1),
            "FailedGetResourceMetric",
            NO_TARGET,
            "failed to get cpu resource metric value: {}",
            OF_SPEC,
            id="resource without target",
        ),
        pytest.param(
            make_container_metric(container="side"),
            pod_reading(1),
            make_pods(1),
            "FailedGetContainerResourceMetric",
            "failed to get cpu utilization: container side not found in Pod web-0",
            "failed to get side container metric value: {}",
            OF_PODS,
            id="container not found",
        ),
        pytest.param(
            make_pods_metric(),
            UNAVAILABLE,
            make_pods(1),
            "FailedGetPodsMetric",
            f"unable to get metric rps: {CONNECTION_REFUSED}",
            "failed to get pods metric value: {}",
            RETRIEVAL,
            id="pods metric cannot be read",
        ),
        pytest.param(
            make_pods_metric(),
            pod_reading(1),
            (),
            "FailedGetPodsMetric",
            NO_PODS,
            "failed to get pods metric value: {}",
            OF_PODS,
            id="pods metric without pods",
        ),
        pytest.param(
            Metric(type=PODS, pods=PodsSource(MetricIdentifier("rps"))),
            pod_reading(1),
            make_pods(1),
            "FailedGetPodsMetric",
            "invalid pods metric source: no average value target was set",
            "failed to get pods metric value: {}",
            OF_SPEC,
            id="pods metric without target",
        ),
        pytest.param(
            make_object_metric(),
            UNAVAILABLE,
            make_pods(1),
            "FailedGetObjectMetric",
            f"unable to get metric requests on Ingress shop/front: {CONNECTION_REFUSED}",
            "failed to get object metric value: {}",
            RETRIEVAL,
            id="object value cannot be read",
        ),
        pytest.param(
            make_object_metric(average="5"),
            UNAVAILABLE,
            make_pods(1),
            "FailedGetObjectMetric",
            f"unable to get metric requests on Ingress shop/front: {CONNECTION_REFUSED}",
            "failed to get object metric value: failed to get requests object metric: {}",
            RETRIEVAL,
            id="object average cannot be read",
        ),
        pytest.param(
            make_object_metric(value=None),
            object_reading(1),
            make_pods(1),
            "FailedGetObjectMetric",
            f"invalid object metric source: {NEITHER}",
            "failed to get object metric value: {}",
            OF_SPEC,
            id="object metric without target",
        ),
        pytest.param(
            make_object_metric(value=None),
            BadSelector("bad"),
            make_pods(1),
            "FailedGetObjectMetric",
            "bad",
            "failed to get object metric value: {}",
            OF_SPEC,
            id="object metric with invalid selector and without target",
        ),
        pytest.param(
            Metric(
                type=OBJECT, object=ObjectSource(ObjectReference(), MetricTarget("Utilization"), MetricIdentifier("m"))
            ),
            object_reading(1),
            make_pods(1),
            "FailedGetObjectMetric",
            f"invalid object metric source: {NEITHER}",
            "failed to get object metric value: {}",
            OF_SPEC,
            id="object metric with utilization target",
        ),
        pytest.param(
            make_external_metric(value="5"),
            UNAVAILABLE,
            make_pods(1),
            "FailedGetExternalMetric",
            f"unable to get external metric shop/queue_depth/nil: {CONNECTION_REFUSED}",
            "failed to get queue_depth external metric value: failed to get external metric queue_depth: {}",
            RETRIEVAL,
            id="external value cannot be read",
        ),
        pytest.param(
            make_external_metric(value="5"),
            external_reading(50),
            (),
            "FailedGetExternalMetric",
            f"unable to calculate ready pods: {NO_PODS}",
            "failed to get queue_depth external metric value: failed to get external metric queue_depth: {}",
            OF_PODS,
            id="external value without pods",
        ),
        pytest.param(
            make_external_metric(average=None),
            external_reading(50),
            make_pods(1),
            "FailedGetExternalMetric",
            f"invalid external metric source: {NEITHER}",
            "failed to get queue_depth external metric value: {}",
            OF_SPEC,
            id="external metric without target",
        ),
    ],
)
def test_unavailable_metric_has_upstream_reason_and_messages(metric, reading, pods, reason, message, error, cause):
    result = propose(metric, reading, context_of(pods, 1))

    assert result == UnavailableMetric(reason, message, error.format(message), *cause)


@pytest.mark.parametrize("kind", [RESOURCE, CONTAINER_RESOURCE, PODS, OBJECT, EXTERNAL, "Weather"])
def test_metric_without_the_source_of_its_type_is_unknown(kind):
    message = f'unknown metric source type "{kind}"'

    assert propose(Metric(type=kind), UNAVAILABLE, make_metric_context()) == UnavailableMetric(
        "InvalidMetricSourceType", message, message, UnavailableCause.SPEC
    )
    assert describe(Metric(type=kind)) == f"metric of unknown type {kind}"
    assert name_of(Metric(type=kind)) == kind


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "description", "name"),
    [
        pytest.param(
            make_resource_metric(), "cpu resource utilization (percentage of request)", "cpu", id="utilization"
        ),
        pytest.param(make_resource_metric(average="1"), "cpu resource", "cpu", id="resource value"),
        pytest.param(
            make_container_metric(),
            "cpu container resource utilization (percentage of request)",
            "cpu",
            id="container utilization",
        ),
        pytest.param(make_container_metric(average="1"), "cpu resource", "cpu", id="container value"),
        pytest.param(make_pods_metric(), "pods metric rps", "rps", id="pods metric"),
        pytest.param(make_object_metric(), "Ingress metric requests", "requests", id="object value"),
        pytest.param(
            make_object_metric(average="5"),
            "external metric requests(nil)",
            "requests",
            id="object average is called external",
        ),
        pytest.param(
            make_external_metric(selector={"b": "2", "a": "1"}),
            (
                "external metric queue_depth(&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},"
                "MatchExpressions:[]LabelSelectorRequirement{},})"
            ),
            "queue_depth{a=1,b=2}",
            id="external metric with selector",
        ),
    ],
)
def test_metric_names_in_messages(metric, description, name):
    assert (describe(metric), name_of(metric)) == (description, name)


# --- status -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "milli", "status"),
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
            id="memory with binary suffix",
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
            id="container cpu",
        ),
        pytest.param(
            make_pods_metric(),
            500,
            MetricStatus(
                type=PODS,
                pods=PodsMetricStatus(MetricIdentifier("rps"), MetricValue(average_value=Quantity.parse("500m"))),
            ),
            id="pods metric",
        ),
    ],
)
def test_status_contains_the_average_per_pod(metric, milli, status):
    result = propose(metric, pod_reading(milli), context_of(make_pods(1)))

    assert (result.status, str(result.status)) == (status, str(status))


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        pytest.param(make_external_metric(), MetricValue(average_value=Quantity.parse("4")), id="average"),
        pytest.param(make_external_metric(value="5"), MetricValue(value=Quantity.parse("12")), id="value"),
    ],
)
def test_status_of_an_external_metric_uses_the_field_of_its_target(metric, value):
    result = propose(metric, external_reading(5, 7), context_of(make_pods(3)))

    assert result.status == external_status(current=value)


def test_average_value_takes_precedence_over_utilization_whatever_the_type():
    target = MetricTarget("Utilization", average_value=Quantity.parse("1"), average_utilization=1)
    metric = Metric(type=RESOURCE, resource=ResourceSource("cpu", target))

    assert (
        proposal_of(metric, pod_reading(1000), context_of(make_pods(1))).calculation.rule
        is CalculationRule.WITHIN_TOLERANCE
    )


def test_average_value_takes_precedence_over_value_whatever_the_type():
    target = MetricTarget("Value", value=Quantity.parse("1"), average_value=Quantity.parse("5"))
    metric = Metric(type=EXTERNAL, external=ExternalSource(MetricIdentifier("q"), target))

    assert proposal_of(metric, external_reading(50), make_metric_context()).replicas == 10


def test_pod_level_requests_need_their_feature_gate():
    pod = make_pod(requests={"cpu": Quantity.parse("2")})
    source = ContainerResourceSource("cpu", MetricTarget("Utilization", average_utilization=50), "app")

    def utilization(metric, **gates):
        context = make_metric_context(pods=(pod,), gates=FeatureGates(**gates))
        return proposal_of(metric, pod_reading(1000), context).calculation.utilization

    assert utilization(make_resource_metric()) == 50
    assert utilization(make_resource_metric(), PodLevelResources=False) == 100
    assert utilization(Metric(type=CONTAINER_RESOURCE, container_resource=source)) == 100


@pytest.mark.parametrize("caps_overflow", [True, False])
def test_ratio_with_zero_replicas_is_total_divided_by_target(caps_overflow):
    assert from_average(12000, 5000, 0, TOLERANCE, caps_overflow=caps_overflow) == Calculation(
        3, CalculationRule.TOTAL, MIN_INT64, 5000, 2.4, total=12000
    )
    assert from_average(0, 5000, 0, TOLERANCE, caps_overflow=caps_overflow) == Calculation(
        0, CalculationRule.TOTAL, MIN_INT64, 5000, 0.0, total=0
    )


def test_value_target_without_pods_fails():
    assert from_total(100, 5, 3, TOLERANCE, ()) == CalculationFailure(f"unable to calculate ready pods: {NO_PODS}")

from copy import deepcopy
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.validation import api_server_problems, prepare, problems, stored_problems
from autoscaler.wire import decode_autoscaler

VALID = {
    "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "1"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 10,
    },
}
ON = FeatureGates()
BAD_LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or"
    " '.', and must start and end"
    " with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def apply_changes(changes):
    """Return the valid document with changes by dotted path; None removes the key."""
    document = deepcopy(VALID)
    for path, value in changes.items():
        *way, last = path.split(".")
        place: dict[str, Any] = document
        for key in way:
            place = place.setdefault(key, {})
        place[last] = value
    return document


def received(changes):
    autoscaler = decode_autoscaler(apply_changes(changes))
    return msgspec.structs.replace(autoscaler, spec=with_defaults(autoscaler.spec))


def problem_lines(changes, gates=ON, old=None, settings=None):
    before = None if old is None else received(old)
    new = prepare(received(changes), gates=gates, old=before)
    return [str(problem) for problem in problems(new, gates=gates, settings=settings or Settings(), old=before)]


def api_server_lines(changes, gates=ON, old=None):
    before = None if old is None else received(old)
    new = prepare(received(changes), gates=gates, old=before)
    found = problems(new, gates=gates, settings=Settings(), old=before)
    return [str(problem) for problem in api_server_problems(found, new, gates=gates, old=before)]


def external(**parts):
    source = {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "5"}} | parts
    return {"spec.metrics": [{"type": "External", "external": source}]}


def metric(**parts):
    return {"spec.metrics": [parts]}


FALLBACK = "spec.metrics[0].external.fallback"


def test_valid_autoscaler_has_no_problems():
    assert problem_lines({}) == []


@pytest.mark.parametrize(
    ("fallback", "expected"),
    [
        pytest.param(
            {"replicas": 5, "failureDurationSeconds": 179},
            [f"{FALLBACK}.failureDurationSeconds: Invalid value: 179: must be greater than or equal to 180"],
            id="failureDurationSeconds below the minimum",
        ),
        pytest.param(
            {"replicas": 5, "failureDurationSeconds": 31536001},
            [f"{FALLBACK}.failureDurationSeconds: Invalid value: 31536001: must be less than or equal to 31536000"],
            id="failureDurationSeconds above the maximum of one year",
        ),
        pytest.param(
            {"replicas": 0},
            [f"{FALLBACK}.replicas: Invalid value: 0: must be greater than or equal to 1"],
            id="replicas below one",
        ),
        pytest.param(
            {},
            [
                (
                    f"{FALLBACK}.replicas: Required value:"
                    " must specify the replicas to propose while the metric cannot be read"
                )
            ],
            id="replicas missing",
        ),
        pytest.param(
            {"replicas": 5, "strategy": "Guess"},
            [f'{FALLBACK}.strategy: Unsupported value: "Guess": supported values: "Static", "UseMax", "UseMin"'],
            id="unknown strategy",
        ),
        pytest.param({"replicas": 500, "failureDurationSeconds": 180}, [], id="replicas above maxReplicas"),
    ],
)
def test_fallback_is_validated_on_create(fallback, expected):
    assert problem_lines(external(fallback=fallback)) == expected


def test_minimum_failure_duration_is_a_setting():
    short = external(fallback={"replicas": 5, "failureDurationSeconds": 2})

    assert problem_lines(short, settings=Settings(fallback_floor=timedelta(seconds=2))) == []


@pytest.mark.parametrize("seconds", [2, 2**63 - 1])
def test_failure_duration_in_use_may_stay_outside_of_the_limits(seconds):
    stored = external(fallback={"replicas": 5, "failureDurationSeconds": seconds})

    assert problem_lines(stored, old=stored) == []


def test_fallback_is_dropped_if_the_gate_is_disabled():
    assert problem_lines(external(fallback={}), gates=FeatureGates(HPAExternalMetricFallback=False)) == []


def test_fallback_in_use_is_kept_if_the_gate_is_disabled():
    gates = FeatureGates(HPAExternalMetricFallback=False)

    assert len(problem_lines(external(fallback={}), gates=gates, old=external(fallback={"replicas": 1}))) == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"spec.mode": "Asleep"},
            ['spec.mode: Unsupported value: "Asleep": supported values: "Active", "DryRun", "Paused"'],
            id="unknown mode",
        ),
        pytest.param({"spec.mode": "DryRun"}, [], id="known mode"),
        pytest.param(
            {"spec.mode": "Paused", "spec.pausedUntil": "2000-01-01T00:00:00Z"}, [], id="pausedUntil with mode Paused"
        ),
        pytest.param(
            {"spec.pausedUntil": "2000-01-01T00:00:00Z"},
            [("spec.pausedUntil: Forbidden: may only be set together with `mode: Paused`; set that, or remove this")],
            id="pausedUntil without mode Paused",
        ),
        pytest.param(
            {"spec.minReplicas": -1},
            ["spec.minReplicas: Invalid value: -1: must be greater than or equal to 0"],
            id="negative minReplicas",
        ),
        pytest.param(
            {"spec.maxReplicas": -1},
            [
                "spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1",
                "spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`",
            ],
            id="negative maxReplicas",
        ),
        pytest.param(
            {"spec.minReplicas": 0},
            [
                (
                    "spec.metrics: Forbidden: must specify at least one Object or External metric to support"
                    " scaling to zero"
                    " replicas"
                )
            ],
            id="minReplicas 0 without Object or External metric",
        ),
        pytest.param(
            {
                "spec.scaleTargetRef.kind": "",
                "spec.scaleTargetRef.name": "a/b%",
                "spec.scaleTargetRef.apiVersion": "v1",
            },
            [
                "spec.scaleTargetRef.kind: Required value",
                "spec.scaleTargetRef.name: Invalid value: \"a/b%\": may not contain '/'",
                "spec.scaleTargetRef.name: Invalid value: \"a/b%\": may not contain '%'",
                'spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group',
            ],
            id="invalid target reference",
        ),
        pytest.param(
            {"spec.scaleTargetRef.kind": "ReplicationController", "spec.scaleTargetRef.apiVersion": "v1"},
            [],
            id="ReplicationController without API group",
        ),
        pytest.param(
            {"metadata.name": "Web", "metadata.namespace": "a.b", "metadata.labels": {"ok": "not ok"}},
            [
                (
                    'metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain must consist of lower case'
                    " alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g."
                    " 'example.com', regex used for validation is"
                    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
                'metadata.namespace: Invalid value: "a.b": must not contain dots',
                f'metadata.labels: Invalid value: "not ok": {BAD_LABEL}',
            ],
            id="metadata problems come first",
        ),
        pytest.param(
            {"metadata.name": "", "metadata.namespace": ""},
            ["metadata.name: Required value: name or generateName is required", "metadata.namespace: Required value"],
            id="missing name and namespace",
        ),
        pytest.param({"metadata.generateName": "web-"}, [], id="generateName with trailing dash"),
        pytest.param(
            {"metadata.annotations": {"a": "x" * 256 * 1024}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
            id="annotations too long",
        ),
    ],
)
def test_problems_on_create(changes, expected):
    assert problem_lines(changes) == expected


def test_invalid_generate_name_is_reported():
    (line,) = problem_lines({"metadata.generateName": "_x"})

    assert line.startswith('metadata.generateName: Invalid value: "_x": a lowercase RFC 1123 subdomain')


def test_invalid_keys_of_labels_and_annotations_are_reported():
    assert [
        line.split(": ")[0]
        for line in problem_lines({"metadata.labels": {"-": ""}, "metadata.annotations": {"a/b/c": ""}})
    ] == [
        "metadata.labels",
        "metadata.annotations",
    ]


TARGET = {"type": "Value", "value": "1"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            metric(),
            [
                "spec.metrics[0].type: Required value: must specify a metric source type",
                *[
                    (
                        'spec.metrics[0].type: Unsupported value: "": supported values: "ContainerResource",'
                        ' "External", "Object",'
                        ' "Pods", "Resource"'
                    )
                ]
                * 2,
            ],
            id="missing metric type",
        ),
        pytest.param(
            metric(type="Pods"),
            ["spec.metrics[0].pods: Required value: must populate information for the given metric source"],
            id="missing metric source",
        ),
        pytest.param(
            metric(type="Object", object={"target": {}}, pods={}, resource={}),
            [
                "spec.metrics[0].object.describedObject.kind: Required value",
                "spec.metrics[0].object.describedObject.name: Required value",
                "spec.metrics[0].object.metric.name: Required value: must specify a metric name",
                "spec.metrics[0].object.target.type: Required value: must specify a metric target type",
                (
                    'spec.metrics[0].object.target.type: Invalid value: "": must be either Utilization, Value,'
                    " or AverageValue"
                ),
                (
                    "spec.metrics[0].object.target.averageValue: Required value:"
                    " must set either a target value or averageValue"
                ),
                "spec.metrics[0].pods: Forbidden: must populate the given metric source only",
                "spec.metrics[0].resource: Forbidden: must populate the given metric source only",
            ],
            id="several sources",
        ),
        pytest.param(
            metric(
                type="Object",
                object={
                    "describedObject": {"kind": "A", "name": "b", "apiVersion": "a/b/c"},
                    "metric": {"name": ".."},
                    "target": TARGET,
                },
            ),
            [
                (
                    'spec.metrics[0].object.describedObject.apiVersion: Invalid value: "a/b/c":'
                    " unexpected GroupVersion string: a/b/c"
                ),
                "spec.metrics[0].object.metric.name: Invalid value: \"..\": may not be '..'",
            ],
            id="Object metric",
        ),
        pytest.param(
            external(target={"type": "Value", "value": "0", "averageValue": "-1", "averageUtilization": 0}),
            [
                'spec.metrics[0].external.target.value: Invalid value: "0": must be positive',
                'spec.metrics[0].external.target.averageValue: Invalid value: "-1": must be positive',
                "spec.metrics[0].external.target.averageUtilization: Invalid value: 0: must be greater than 0",
                (
                    "spec.metrics[0].external.target.value: Forbidden:"
                    " may not set both a target value for metric and a per-pod target"
                ),
            ],
            id="External metric with two targets",
        ),
        pytest.param(
            external(target={"type": "Value"}),
            [
                (
                    "spec.metrics[0].external.target.averageValue: Required value:"
                    " must set either a target value for metric or a per-pod target"
                )
            ],
            id="External metric without target",
        ),
        pytest.param(
            metric(type="Pods", pods={"metric": {"name": "qps"}, "target": TARGET}),
            ["spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue"],
            id="Pods metric without averageValue",
        ),
        pytest.param(
            metric(type="Pods", pods={"metric": {"name": "qps"}, "target": TARGET | {"averageValue": "1"}}),
            [],
            id="Pods metric with averageValue",
        ),
        pytest.param(
            metric(type="Resource", resource={"target": TARGET}),
            [
                "spec.metrics[0].resource.name: Required value: must specify a resource name",
                (
                    "spec.metrics[0].resource.target.averageUtilization: Required value:"
                    " must set either a target raw value or a target utilization"
                ),
            ],
            id="Resource metric without name and target",
        ),
        pytest.param(
            metric(
                type="ContainerResource",
                containerResource={
                    "name": "pods",
                    "container": "a.b",
                    "target": {"type": "Utilization", "averageUtilization": 5, "averageValue": "5"},
                },
            ),
            [
                (
                    'spec.metrics[0].containerResource.name: Invalid value: "pods": must be a standard'
                    " resource for containers"
                ),
                'spec.metrics[0].containerResource.container: Invalid value: "a.b": must not contain dots',
                (
                    "spec.metrics[0].containerResource.target.averageValue: Forbidden:"
                    " may not set both a target raw value and a target utilization"
                ),
            ],
            id="ContainerResource metric",
        ),
        pytest.param(
            metric(
                type="ContainerResource", containerResource={"target": {"type": "Utilization", "averageUtilization": 5}}
            ),
            [
                "spec.metrics[0].containerResource.name: Required value: must specify a resource name",
                "spec.metrics[0].containerResource.container: Required value: must specify a container",
            ],
            id="empty ContainerResource metric",
        ),
    ],
)
def test_problems_of_metrics(changes, expected):
    assert problem_lines(changes) == expected


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param(
            {"stabilizationWindowSeconds": -1},
            ["stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"],
            id="negative window",
        ),
        pytest.param(
            {"stabilizationWindowSeconds": 3601},
            ["stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"],
            id="window above one hour",
        ),
        pytest.param(
            {"selectPolicy": "Most"},
            ['selectPolicy: Unsupported value: "Most": supported values: "Disabled", "Max", "Min"'],
            id="unknown selectPolicy",
        ),
        pytest.param(
            {"policies": []},
            ["policies: Required value: must specify at least one Policy"],
            id="empty list of policies",
        ),
        pytest.param(
            {"policies": [{}]},
            [
                'policies[0].type: Unsupported value: "": supported values: "Percent", "Pods"',
                "policies[0].value: Invalid value: 0: must be greater than zero",
                "policies[0].periodSeconds: Invalid value: 0: must be greater than zero",
            ],
            id="empty policy",
        ),
        pytest.param(
            {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]},
            ["policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800"],
            id="period above half an hour",
        ),
        pytest.param(
            {"tolerance": "-100m"},
            ['tolerance: Invalid value: "-100m": must be greater than or equal to 0'],
            id="negative tolerance",
        ),
    ],
)
@pytest.mark.parametrize("direction", ["scaleUp", "scaleDown"])
def test_problems_of_behavior(direction, rules, expected):
    assert problem_lines({f"spec.behavior.{direction}": rules}) == [
        f"spec.behavior.{direction}.{line}" for line in expected
    ]


def test_behavior_without_defaults_is_validated():
    bare = decode_autoscaler(apply_changes({"spec.behavior": {}}))

    assert problems(bare, gates=ON, settings=Settings()) == ()


def test_tolerance_is_dropped_if_the_gate_is_disabled_unless_in_use():
    off = FeatureGates(HPAConfigurableTolerance=False)
    bad = {"spec.behavior.scaleUp": {"tolerance": "-1"}}

    assert problem_lines(bad, gates=off) == []
    assert problem_lines({}, gates=off) == []
    assert problem_lines(bad, gates=off, old={"spec.behavior": {}}) == []
    assert problem_lines(bad, gates=off, old={"spec.behavior.scaleDown": {"tolerance": "1"}}) == [
        'spec.behavior.scaleUp.tolerance: Invalid value: "-1": must be greater than or equal to 0'
    ]


@pytest.mark.parametrize(
    ("changes", "old", "expected"),
    [
        pytest.param(
            {"metadata.resourceVersion": ""},
            {},
            ['metadata.resourceVersion: Invalid value: "": must be specified for an update'],
            id="missing resourceVersion",
        ),
        pytest.param(
            {"metadata.name": "other", "metadata.namespace": "else", "metadata.uid": "b"},
            {"metadata.uid": "a"},
            [
                'metadata.name: Invalid value: "other": field is immutable',
                'metadata.namespace: Invalid value: "else": field is immutable',
                'metadata.uid: Invalid value: "b": field is immutable',
            ],
            id="changed name, namespace and uid",
        ),
        pytest.param({}, {"metadata.uid": "a"}, [], id="absent uid"),
        pytest.param(
            {"spec.scaleTargetRef.apiVersion": "v1"},
            {"spec.scaleTargetRef.apiVersion": "v1"},
            [],
            id="unchanged invalid apiVersion of the target",
        ),
        pytest.param(
            {"spec.scaleTargetRef.apiVersion": "v1"},
            {},
            ['spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group'],
            id="changed apiVersion of the target",
        ),
    ],
)
def test_problems_on_update(changes, old, expected):
    assert problem_lines(changes, old=old) == expected


def test_stored_min_replicas_zero_is_accepted_if_the_gate_is_disabled():
    off = FeatureGates(HPAScaleToZero=False)
    at_zero = {"spec.minReplicas": 0} | external()

    assert problem_lines(at_zero, gates=off) == [
        "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"
    ]
    assert problem_lines(at_zero, gates=off, old=at_zero) == []


def test_described_object_is_not_validated_if_a_stored_one_is_invalid():
    def described(version):
        return metric(
            type="Object",
            object={
                "describedObject": {"kind": "A", "name": "b", "apiVersion": version},
                "metric": {"name": "m"},
                "target": TARGET,
            },
        )

    assert problem_lines(described("x/y/z"), old=described("a/b/c")) == []
    assert len(problem_lines(described("x/y/z"), old=described("v1"))) == 1


def test_generation_must_not_be_negative_or_decremented():
    old = decode_autoscaler(apply_changes({"metadata.generation": 1}))
    new = decode_autoscaler(apply_changes({"metadata.generation": -1}))

    assert [str(problem) for problem in problems(new, gates=ON, settings=Settings(), old=old)] == [
        "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
        "metadata.generation: Invalid value: -1: must not be decremented",
    ]


@pytest.mark.parametrize(
    ("changes", "gates", "generation"),
    [
        pytest.param({}, ON, 4, id="unchanged spec"),
        pytest.param({"metadata.labels": {"a": "b"}}, ON, 4, id="changed labels"),
        pytest.param({"spec.maxReplicas": 11}, ON, 5, id="changed spec"),
        pytest.param({"spec.maxReplicas": 11}, FeatureGates(HPAGeneration=False), 4, id="HPAGeneration disabled"),
    ],
)
def test_generation_is_incremented_by_changes_of_the_spec(changes, gates, generation):
    old = received({"metadata.generation": 4})

    assert prepare(received(changes), gates=gates, old=old).metadata.generation == generation


@pytest.mark.parametrize(("gates", "generation"), [(ON, 1), (FeatureGates(HPAGeneration=False), 9)])
def test_new_object_has_generation_one_and_an_empty_status(gates, generation):
    new = prepare(received({"metadata.generation": 9, "status.currentReplicas": 3}), gates=gates)

    assert (new.metadata.generation, new.status.current_replicas) == (generation, 0)


def test_declared_rules_for_bounds_replace_the_hand_written_ones():
    assert api_server_lines({"spec.maxReplicas": 0, "spec.behavior": {"scaleUp": {"policies": []}}}) == [
        "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy",
        "spec.maxReplicas: Required value",
    ]
    assert api_server_lines({"spec.minReplicas": -1, "spec.maxReplicas": -1}) == [
        "spec.minReplicas: Invalid value: -1: must be greater than or equal to 0",
        "spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1",
    ]


def test_declared_rules_skip_fields_unchanged_by_an_update():
    bad = {"spec.minReplicas": -1, "spec.maxReplicas": 0}

    assert api_server_lines(bad, old=bad) == [
        "spec.minReplicas: Invalid value: -1: must be greater than or equal to 0",
        "spec.maxReplicas: Required value: must be set and greater than 0",
    ]


def test_api_server_problems_are_unique_and_common_ones_come_first():
    assert api_server_lines(
        {"metadata.name": "a/b", "metadata.resourceVersion": "", "spec.metrics": [{"type": "X"}]}, old={}
    ) == [
        "metadata.name: Invalid value: \"a/b\": may not contain '/'",
        'metadata.resourceVersion: Invalid value: "": must be specified for an update',
        'metadata.name: Invalid value: "a/b": field is immutable',
        (
            'spec.metrics[0].type: Unsupported value: "X": supported values: "ContainerResource",'
            ' "External", "Object", "Pods",'
            ' "Resource"'
        ),
    ]


valid_specs = st.fixed_dictionaries(
    {"spec.maxReplicas": st.integers(5, 50)},
    optional={
        "spec.minReplicas": st.integers(1, 5),
        "spec.mode": st.sampled_from(["Active", "DryRun", "Paused"]),
        "spec.behavior": st.fixed_dictionaries({}, optional={"scaleUp": st.just({}), "scaleDown": st.just({})}),
        "spec.metrics": st.lists(
            st.sampled_from([*external(fallback={"replicas": 3})["spec.metrics"], *external()["spec.metrics"]]),
            max_size=3,
        ),
    },
)


@given(valid_specs)
def test_defaults_of_a_valid_spec_are_valid(changes):
    assert problem_lines(changes) == []


QUEUE_METRIC = external()["spec.metrics"]
ALL_GATE_COMBINATIONS = [
    FeatureGates(HPAScaleToZero=zero, HPAConfigurableTolerance=tolerance, HPAExternalMetricFallback=fallback)
    for zero in (True, False)
    for tolerance in (True, False)
    for fallback in (True, False)
]


@given(
    st.fixed_dictionaries(
        {
            "spec.minReplicas": st.integers(0, 3),
            "spec.metrics": st.sampled_from([2, 180, 600, 31_536_000]).map(
                lambda seconds: external(fallback={"replicas": 5, "failureDurationSeconds": seconds})["spec.metrics"]
            ),
        },
        optional={
            "spec.behavior": st.sampled_from(["0", "50m"]).map(lambda tolerance: {"scaleUp": {"tolerance": tolerance}}),
            "spec.scaleTargetRef.apiVersion": st.sampled_from(["apps/v1", "v1"]),
        },
    ),
    st.sampled_from(ALL_GATE_COMBINATIONS),
    st.sampled_from(ALL_GATE_COMBINATIONS),
    st.sampled_from([2, 180, 3600]),
    st.sampled_from([2, 180, 3600]),
)
def test_spec_that_was_accepted_stays_valid_when_gates_and_settings_change(changes, before, after, floor, new_floor):
    new = prepare(received(changes), gates=before)
    if not problems(new, gates=before, settings=Settings(fallback_floor=timedelta(seconds=floor))):
        settings = Settings(fallback_floor=timedelta(seconds=new_floor))
        assert stored_problems(new, gates=after, settings=settings) == ()


def test_stored_minimum_of_zero_stays_valid_when_the_gate_is_switched_off():
    stored = received({"spec.minReplicas": 0, "spec.metrics": QUEUE_METRIC})

    assert stored_problems(stored, gates=FeatureGates(HPAScaleToZero=False), settings=Settings()) == ()


def test_stored_spec_that_no_gate_permits_is_reported():
    lines = map(str, stored_problems(received({"spec.maxReplicas": -1}), gates=ON, settings=Settings()))

    assert "spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1" in lines

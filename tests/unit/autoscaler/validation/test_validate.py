from copy import deepcopy
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.validation import as_api_server_lists_them, prepared, problems, refusal
from autoscaler.wire import decode_autoscaler

SOUND = {
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


def altered(changes):
    """Make the sound document with some values set; a path is written with dots, None takes the key away."""
    document = deepcopy(SOUND)
    for path, value in changes.items():
        *way, last = path.split(".")
        place = document
        for key in way:
            place = place.setdefault(key, {})
        place[last] = value
    return document


def received(changes):
    autoscaler = decode_autoscaler(altered(changes))
    return msgspec.structs.replace(autoscaler, spec=with_defaults(autoscaler.spec))


def lines(changes, gates=ON, old=None, settings=None):
    before = None if old is None else received(old)
    new = prepared(received(changes), gates=gates, old=before)
    return [str(problem) for problem in problems(new, gates=gates, settings=settings or Settings(), old=before)]


def answered(changes, gates=ON, old=None):
    before = None if old is None else received(old)
    new = prepared(received(changes), gates=gates, old=before)
    found = problems(new, gates=gates, settings=Settings(), old=before)
    return [str(problem) for problem in as_api_server_lists_them(found, new, gates=gates, old=before)]


def external(**parts):
    source = {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "5"}} | parts
    return {"spec.metrics": [{"type": "External", "external": source}]}


def metric(**parts):
    return {"spec.metrics": [parts]}


FALLBACK = "spec.metrics[0].external.fallback"


def test_a_sound_autoscaler_has_no_problems():
    assert lines({}) == []


@pytest.mark.parametrize(
    ("fallback", "expected"),
    [
        pytest.param(
            {"replicas": 5, "failureDurationSeconds": 179},
            [f"{FALLBACK}.failureDurationSeconds: Invalid value: 179: must be greater than or equal to 180"],
            id="it must wait three minutes",
        ),
        pytest.param(
            {"replicas": 0},
            [f"{FALLBACK}.replicas: Invalid value: 0: must be greater than or equal to 1"],
            id="it needs a replica",
        ),
        pytest.param(
            {},
            [
                (
                    f"{FALLBACK}.replicas: Required value:"
                    " must specify the replicas to propose while the metric cannot be read"
                )
            ],
            id="it must say how many replicas",
        ),
        pytest.param(
            {"replicas": 5, "strategy": "Guess"},
            [f'{FALLBACK}.strategy: Unsupported value: "Guess": supported values: "Static", "UseMax", "UseMin"'],
            id="its strategy must be known",
        ),
        pytest.param({"replicas": 500, "failureDurationSeconds": 180}, [], id="it may exceed the bounds"),
    ],
)
def test_a_fallback_is_checked_on_create(fallback, expected):
    assert lines(external(fallback=fallback)) == expected


def test_the_shortest_failure_duration_is_a_setting():
    short = external(fallback={"replicas": 5, "failureDurationSeconds": 2})

    assert lines(short, settings=Settings(fallback_floor=timedelta(seconds=2))) == []


def test_a_fallback_without_the_gate_is_dropped():
    assert lines(external(fallback={}), gates=FeatureGates(HPAExternalMetricFallback=False)) == []


def test_a_fallback_without_the_gate_stays_where_it_is_in_use():
    gates = FeatureGates(HPAExternalMetricFallback=False)

    assert len(lines(external(fallback={}), gates=gates, old=external(fallback={"replicas": 1}))) == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"spec.mode": "Asleep"},
            ['spec.mode: Unsupported value: "Asleep": supported values: "Active", "DryRun", "Paused"'],
            id="a mode must be known",
        ),
        pytest.param({"spec.mode": "DryRun"}, [], id="a known mode"),
        pytest.param(
            {"spec.mode": "Paused", "spec.pausedUntil": "2000-01-01T00:00:00Z"}, [], id="a pause may have an end"
        ),
        pytest.param(
            {"spec.pausedUntil": "2000-01-01T00:00:00Z"},
            [("spec.pausedUntil: Forbidden: may only be set together with `mode: Paused`; set that, or remove this")],
            id="an end needs a pause",
        ),
        pytest.param(
            {"spec.minReplicas": -1},
            ["spec.minReplicas: Invalid value: -1: must be greater than or equal to 0"],
            id="fewer than none",
        ),
        pytest.param(
            {"spec.maxReplicas": -1},
            [
                "spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1",
                "spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`",
            ],
            id="a negative maximum",
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
            id="zero needs a metric that needs no pods",
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
            id="a target must be nameable",
        ),
        pytest.param(
            {"spec.scaleTargetRef.kind": "ReplicationController", "spec.scaleTargetRef.apiVersion": "v1"},
            [],
            id="the one kind without a group",
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
            id="metadata comes first",
        ),
        pytest.param(
            {"metadata.name": "", "metadata.namespace": ""},
            ["metadata.name: Required value: name or generateName is required", "metadata.namespace: Required value"],
            id="an object has a name and a namespace",
        ),
        pytest.param({"metadata.generateName": "web-"}, [], id="a prefix may end in a dash"),
        pytest.param(
            {"metadata.annotations": {"a": "x" * 256 * 1024}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
            id="annotations have a limit",
        ),
    ],
)
def test_create(changes, expected):
    assert lines(changes) == expected


def test_a_bad_generated_name_is_reported_as_such():
    (line,) = lines({"metadata.generateName": "_x"})

    assert line.startswith('metadata.generateName: Invalid value: "_x": a lowercase RFC 1123 subdomain')


def test_bad_keys_of_labels_and_annotations_are_reported():
    assert [
        line.split(": ")[0] for line in lines({"metadata.labels": {"-": ""}, "metadata.annotations": {"a/b/c": ""}})
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
            id="a metric has a type",
        ),
        pytest.param(
            metric(type="Pods"),
            ["spec.metrics[0].pods: Required value: must populate information for the given metric source"],
            id="a metric has a source",
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
            id="of several sources the first is looked into and the others are refused",
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
            id="an object metric",
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
            id="an external metric with too many targets",
        ),
        pytest.param(
            external(target={"type": "Value"}),
            [
                (
                    "spec.metrics[0].external.target.averageValue: Required value:"
                    " must set either a target value for metric or a per-pod target"
                )
            ],
            id="an external metric without a target",
        ),
        pytest.param(
            metric(type="Pods", pods={"metric": {"name": "qps"}, "target": TARGET}),
            ["spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue"],
            id="a pods metric is about an average",
        ),
        pytest.param(
            metric(type="Pods", pods={"metric": {"name": "qps"}, "target": TARGET | {"averageValue": "1"}}),
            [],
            id="a pods metric with its average",
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
            id="a resource metric without a name or an aim",
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
            id="a container resource metric",
        ),
        pytest.param(
            metric(
                type="ContainerResource", containerResource={"target": {"type": "Utilization", "averageUtilization": 5}}
            ),
            [
                "spec.metrics[0].containerResource.name: Required value: must specify a resource name",
                "spec.metrics[0].containerResource.container: Required value: must specify a container",
            ],
            id="an empty container resource metric",
        ),
    ],
)
def test_metrics(changes, expected):
    assert lines(changes) == expected


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param(
            {"stabilizationWindowSeconds": -1},
            ["stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"],
            id="a window is not negative",
        ),
        pytest.param(
            {"stabilizationWindowSeconds": 3601},
            ["stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"],
            id="a window is at most an hour",
        ),
        pytest.param(
            {"selectPolicy": "Most"},
            ['selectPolicy: Unsupported value: "Most": supported values: "Disabled", "Max", "Min"'],
            id="a choice must be known",
        ),
        pytest.param(
            {"policies": []},
            ["policies: Required value: must specify at least one Policy"],
            id="an empty list of policies",
        ),
        pytest.param(
            {"policies": [{}]},
            [
                'policies[0].type: Unsupported value: "": supported values: "Percent", "Pods"',
                "policies[0].value: Invalid value: 0: must be greater than zero",
                "policies[0].periodSeconds: Invalid value: 0: must be greater than zero",
            ],
            id="an empty policy",
        ),
        pytest.param(
            {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]},
            ["policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800"],
            id="a period is at most half an hour",
        ),
        pytest.param(
            {"tolerance": "-100m"},
            ['tolerance: Invalid value: "-100m": must be greater than or equal to 0'],
            id="a tolerance is not negative",
        ),
    ],
)
@pytest.mark.parametrize("direction", ["scaleUp", "scaleDown"])
def test_behavior(direction, rules, expected):
    assert lines({f"spec.behavior.{direction}": rules}) == [f"spec.behavior.{direction}.{line}" for line in expected]


def test_a_behavior_that_was_never_filled_in_is_checked_as_it_is():
    bare = decode_autoscaler(altered({"spec.behavior": {}}))

    assert problems(bare, gates=ON, settings=Settings()) == ()


def test_a_tolerance_without_the_gate_is_dropped_unless_in_use():
    off = FeatureGates(HPAConfigurableTolerance=False)
    bad = {"spec.behavior.scaleUp": {"tolerance": "-1"}}

    assert lines(bad, gates=off) == []
    assert lines({}, gates=off) == []
    assert lines(bad, gates=off, old={"spec.behavior": {}}) == []
    assert lines(bad, gates=off, old={"spec.behavior.scaleDown": {"tolerance": "1"}}) == [
        'spec.behavior.scaleUp.tolerance: Invalid value: "-1": must be greater than or equal to 0'
    ]


@pytest.mark.parametrize(
    ("changes", "old", "expected"),
    [
        pytest.param(
            {"metadata.resourceVersion": ""},
            {},
            ['metadata.resourceVersion: Invalid value: "": must be specified for an update'],
            id="an update says of what",
        ),
        pytest.param(
            {"metadata.name": "other", "metadata.namespace": "else", "metadata.uid": "b"},
            {"metadata.uid": "a"},
            [
                'metadata.name: Invalid value: "other": field is immutable',
                'metadata.namespace: Invalid value: "else": field is immutable',
                'metadata.uid: Invalid value: "b": field is immutable',
            ],
            id="who it is does not change",
        ),
        pytest.param({}, {"metadata.uid": "a"}, [], id="a uid may be left out"),
        pytest.param(
            {"spec.scaleTargetRef.apiVersion": "v1"},
            {"spec.scaleTargetRef.apiVersion": "v1"},
            [],
            id="a target's version that was accepted stays accepted",
        ),
        pytest.param(
            {"spec.scaleTargetRef.apiVersion": "v1"},
            {},
            ['spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group'],
            id="a target's version that changed is looked at",
        ),
    ],
)
def test_update(changes, old, expected):
    assert lines(changes, old=old) == expected


def test_zero_may_stay_where_it_was_allowed_before():
    off = FeatureGates(HPAScaleToZero=False)
    at_zero = {"spec.minReplicas": 0} | external()

    assert lines(at_zero, gates=off) == ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"]
    assert lines(at_zero, gates=off, old=at_zero) == []


def test_a_described_object_stays_accepted_once_one_was_wrong():
    def described(version):
        return metric(
            type="Object",
            object={
                "describedObject": {"kind": "A", "name": "b", "apiVersion": version},
                "metric": {"name": "m"},
                "target": TARGET,
            },
        )

    assert lines(described("x/y/z"), old=described("a/b/c")) == []
    assert len(lines(described("x/y/z"), old=described("v1"))) == 1


def test_a_generation_is_neither_negative_nor_lowered():
    old = decode_autoscaler(altered({"metadata.generation": 1}))
    new = decode_autoscaler(altered({"metadata.generation": -1}))

    assert [str(problem) for problem in problems(new, gates=ON, settings=Settings(), old=old)] == [
        "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
        "metadata.generation: Invalid value: -1: must not be decremented",
    ]


@pytest.mark.parametrize(
    ("changes", "gates", "generation"),
    [
        pytest.param({}, ON, 4, id="the same spec"),
        pytest.param({"metadata.labels": {"a": "b"}}, ON, 4, id="other labels"),
        pytest.param({"spec.maxReplicas": 11}, ON, 5, id="another spec"),
        pytest.param({"spec.maxReplicas": 11}, FeatureGates(HPAGeneration=False), 4, id="nobody counts"),
    ],
)
def test_the_generation_counts_changes_of_the_spec(changes, gates, generation):
    old = received({"metadata.generation": 4})

    assert prepared(received(changes), gates=gates, old=old).metadata.generation == generation


@pytest.mark.parametrize(("gates", "generation"), [(ON, 1), (FeatureGates(HPAGeneration=False), 9)])
def test_a_new_object_begins_at_generation_one_with_an_empty_status(gates, generation):
    new = prepared(received({"metadata.generation": 9, "status.currentReplicas": 3}), gates=gates)

    assert (new.metadata.generation, new.status.current_replicas) == (generation, 0)


def test_the_api_server_replaces_bounds_by_their_declared_twins_at_the_end():
    assert answered({"spec.maxReplicas": 0, "spec.behavior": {"scaleUp": {"policies": []}}}) == [
        "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy",
        "spec.maxReplicas: Required value",
    ]
    assert answered({"spec.minReplicas": -1, "spec.maxReplicas": -1}) == [
        "spec.minReplicas: Invalid value: -1: must be greater than or equal to 0",
        "spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1",
    ]


def test_the_api_server_does_not_declare_again_what_an_update_leaves_alone():
    bad = {"spec.minReplicas": -1, "spec.maxReplicas": 0}

    assert answered(bad, old=bad) == [
        "spec.minReplicas: Invalid value: -1: must be greater than or equal to 0",
        "spec.maxReplicas: Required value: must be set and greater than 0",
    ]


def test_the_api_server_says_each_thing_once_and_common_things_first():
    assert answered(
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


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        pytest.param(
            {"spec.minReplicas": 11},
            'HorizontalPodAutoscaler.autoscaling "web" is invalid: spec.maxReplicas: Invalid value: 10:'
            " must be greater than or equal to `minReplicas`",
            id="one reason",
        ),
        pytest.param(
            {"spec.scaleTargetRef.kind": "", "spec.scaleTargetRef.name": ""},
            'HorizontalPodAutoscaler.autoscaling "web" is invalid: [spec.scaleTargetRef.kind: Required value,'
            " spec.scaleTargetRef.name: Required value]",
            id="several reasons",
        ),
    ],
)
def test_a_refusal_is_one_line(changes, line):
    new = received(changes)

    assert refusal(problems(new, gates=ON, settings=Settings()), new.metadata.name) == line


sound_specs = st.fixed_dictionaries(
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


@given(sound_specs)
def test_what_is_left_out_of_a_sound_spec_is_filled_in_soundly(changes):
    assert lines(changes) == []

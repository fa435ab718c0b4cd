from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.types import spec as s
from autoscaler.types import status as t
from autoscaler.values.quantity import Quantity
from autoscaler.values.selector import LabelSelector, LabelSelectorRequirement
from autoscaler.wire import (
    DecodeError,
    decode_autoscaler,
    decode_spec,
    decode_status,
    decode_stored,
    encode,
)

NOON = datetime(2000, 1, 1, 12, tzinfo=UTC)


def with_target(**target):
    return {"spec": {"metrics": [{"type": "Pods", "pods": {"target": target}}]}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            {"spec": {"minReplicas": True}},
            "spec.minReplicas: must be an integer, is true or false",
            id="boolean instead of a number",
        ),
        pytest.param(
            {"spec": {"minReplicas": "3"}},
            "spec.minReplicas: must be an integer, is a string",
            id="quoted number",
        ),
        pytest.param(
            {"spec": {"maxReplicas": 1.0}},
            "spec.maxReplicas: must be an integer, is a non-integer number",
            id="number with a zero fraction",
        ),
        pytest.param(
            {"spec": {"maxReplicas": 3_000_000_000}},
            "spec.maxReplicas: must be at most 2147483647",
            id="replicas above int32",
        ),
        pytest.param(
            {"spec": {"maxReplicas": -3_000_000_000}},
            "spec.maxReplicas: must be at least -2147483648",
            id="replicas below int32",
        ),
        pytest.param(
            {"spec": {"metrics": [{"external": {"fallback": {"failureDurationSeconds": 2**63}}}]}},
            "spec.metrics[0].external.fallback.failureDurationSeconds: must be at most 9223372036854775807",
            id="failure duration above int64",
        ),
        pytest.param({"spec": []}, "spec: must be an object, is a list", id="spec is a list"),
        pytest.param([], "must be an object, is a list", id="document is a list"),
        pytest.param(
            with_target(value="1.5.5"),
            'spec.metrics[0].pods.target.value: must be a quantity such as "500m", "2" or "1Gi": quantities must match'
            " the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="invalid quantity",
        ),
        pytest.param(
            with_target(value=True),
            "spec.metrics[0].pods.target.value: must be a quantity, is true or false",
            id="boolean instead of a quantity",
        ),
        pytest.param(
            with_target(value={}),
            "spec.metrics[0].pods.target.value: must be a quantity, is an object",
            id="object instead of a quantity",
        ),
        pytest.param(
            {"spec": {"pausedUntil": "2000-01-01T00:00:00"}},
            "spec.pausedUntil: must be a time such as 2000-01-01T02:00:00Z, with its time zone",
            id="time without zone",
        ),
        pytest.param(
            {"metadata": {"labels": {"app": "web", "version": 1}}},
            "metadata.labels.version: must be a string, is an integer; put it in quotes",
            id="label value parsed as a number by YAML",
        ),
        pytest.param(
            {"metadata": {"labels": {1: "web"}}},
            "metadata.labels: each key must be a string, is an integer; put it in quotes",
            id="label key parsed as a number by YAML",
        ),
        pytest.param(
            {"spec": {"metrics": [{}, {"pods": {"metric": {"selector": {"matchLabels": {"a": False}}}}}]}},
            "spec.metrics[1].pods.metric.selector.matchLabels.a: must be a string, is true or false; put it in quotes",
            id="map entry inside a list",
        ),
    ],
)
def test_invalid_document_is_rejected_with_the_path(document, message):
    with pytest.raises(DecodeError) as caught:
        decode_autoscaler(document)

    assert str(caught.value) == message


def test_null_means_absent_everywhere():
    document = {
        "metadata": {"name": None, "labels": {"app": None}},
        "spec": {"maxReplicas": None, "minReplicas": None, "metrics": [None], "behavior": {"scaleUp": None}},
        "status": {"conditions": None, "currentMetrics": [{"resource": {"current": None}}]},
    }

    autoscaler = decode_autoscaler(document)

    assert autoscaler.metadata.labels == {"app": ""}
    assert autoscaler.spec == s.Spec(metrics=(s.Metric(),), behavior=s.Behavior())
    assert autoscaler.status.current_metrics == (
        t.MetricStatus(type="", resource=t.ResourceMetricStatus("", t.MetricValue())),
    )


def test_null_does_not_hide_errors_elsewhere():
    with pytest.raises(DecodeError, match=r"^spec.maxReplicas: must be an integer, is a string$"):
        decode_autoscaler({"metadata": None, "spec": {"maxReplicas": "many", "metrics": None}})


def test_null_document_is_empty():
    assert decode_spec(None) == s.Spec()


def test_null_entry_of_a_list_is_the_zero_value():
    assert decode_spec({"behavior": {"scaleUp": {"policies": [None]}}, "maxReplicas": None}).behavior == s.Behavior(
        scale_up=s.ScalingRules(policies=(s.Policy(),))
    )


@pytest.mark.parametrize(
    ("number", "value"),
    [
        pytest.param(1000.0, "1000", id="float without fraction"),
        pytest.param(0.25, "250m", id="float with fraction"),
        pytest.param(7, "7", id="integer"),
    ],
)
def test_quantity_in_a_parsed_document_may_be_a_number(number, value):
    spec = decode_spec({"behavior": {"scaleUp": {"tolerance": number}}})

    assert spec.behavior == s.Behavior(scale_up=s.ScalingRules(tolerance=Quantity.parse(value)))


def test_unknown_keys_are_ignored_unless_strict():
    assert decode_spec({"maxReplica": 3}) == s.Spec()


def test_unknown_key_is_reported_with_the_most_similar_one():
    document = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "managedFields": [], "labels": {"anything": "goes"}},
        "spec": {
            "minReplica": 1,
            "maxReplicas": "three",
            "metrics": [{"type": "Resource", "resource": {"target": {"averageutilisation": 5}}, "frobnicate": 1}],
        },
        "status": {"conditions": [{"type": "AbleToScale", "status": "True", "observedGeneration": 1}]},
    }

    with pytest.raises(DecodeError) as caught:
        decode_autoscaler(document, strict=True)

    assert [str(error) for error in caught.value.errors] == [
        "spec.minReplica: unknown field; did you mean minReplicas?",
        "spec.metrics[0].resource.target.averageutilisation: unknown field; did you mean averageUtilization?",
        (
            "spec.metrics[0].frobnicate: unknown field;"
            " known fields are type, object, pods, resource, containerResource, external"
        ),
        "spec.maxReplicas: must be an integer, is a string",
    ]


def test_unknown_keys_alone_are_rejected_in_strict_mode():
    with pytest.raises(DecodeError, match=r"^conditionz: unknown field; did you mean conditions\?$"):
        decode_status({"conditionz": []}, strict=True)


def test_document_with_known_keys_is_accepted_in_strict_mode():
    assert decode_spec({"maxReplicas": 3, "metrics": []}, strict=True).max_replicas == 3


def test_empty_spec_encodes_the_fields_without_omitempty():
    assert encode(s.Spec()) == {"scaleTargetRef": {"kind": "", "name": ""}, "maxReplicas": 0}


def test_empty_status_encodes_the_fields_without_omitempty():
    assert encode(t.Status()) == {"desiredReplicas": 0, "currentMetrics": None}


def test_empty_sources_encode_their_required_fields():
    spec = s.Spec(metrics=(s.Metric(object=s.ObjectSource(), resource=s.ResourceSource()),))

    assert encode(spec)["metrics"] == [
        {
            "type": "",
            "object": {
                "describedObject": {"kind": "", "name": ""},
                "target": {"type": ""},
                "metric": {"name": ""},
            },
            "resource": {"name": "", "target": {"type": ""}},
        }
    ]


def test_explicit_zero_values_are_encoded():
    rules = s.ScalingRules(stabilization_window_seconds=0, select_policy="", policies=())

    assert encode(s.Spec(min_replicas=0, behavior=s.Behavior(scale_up=rules))) == {
        "scaleTargetRef": {"kind": "", "name": ""},
        "minReplicas": 0,
        "maxReplicas": 0,
        "behavior": {"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": ""}},
    }


def test_selector_is_encoded_with_labels_and_expressions():
    selector = LabelSelector({"app": "web"}, (LabelSelectorRequirement("tier", "Exists"),))
    spec = s.Spec(metrics=(s.Metric(pods=s.PodsSource(metric=s.MetricIdentifier("qps", selector))),))

    assert encode(spec)["metrics"][0]["pods"]["metric"] == {
        "name": "qps",
        "selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    }


def test_status_is_encoded_with_times_quantities_and_unread_metrics():
    status = t.Status(
        desired_replicas=3,
        current_metrics=(t.UNREAD, t.MetricStatus("Resource", resource=t.ResourceMetricStatus("cpu", t.MetricValue()))),
        last_scale_time=NOON,
        conditions=(t.Condition("AbleToScale", "True", None, "ok"),),
    )

    assert encode(status) == {
        "desiredReplicas": 3,
        "currentMetrics": [{"type": ""}, {"type": "Resource", "resource": {"name": "cpu", "current": {}}}],
        "lastScaleTime": "2000-01-01T12:00:00Z",
        "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": None, "reason": "ok"}],
    }


int32 = st.integers(-(2**31), 2**31 - 1)
text = st.text(max_size=8)
quantities = st.integers(-(10**6), 10**6).map(Quantity.from_milli)
targets = st.builds(
    s.MetricTarget,
    type=text,
    value=st.none() | quantities,
    average_value=st.none() | quantities,
    average_utilization=st.none() | int32,
)
selectors = st.builds(LabelSelector, st.dictionaries(text, text, max_size=2))
identifiers = st.builds(s.MetricIdentifier, text, st.none() | selectors)
fallbacks = st.builds(s.Fallback, st.none() | int32, st.none() | int32, st.none() | text)
externals = st.builds(s.ExternalSource, identifiers, targets, st.none() | fallbacks)
metrics = st.builds(
    s.Metric,
    type=text,
    external=st.none() | externals,
    resource=st.none() | st.builds(s.ResourceSource, text, targets),
    object=st.none() | st.builds(s.ObjectSource, st.builds(s.ObjectReference, text, text, text), targets, identifiers),
)
rules = st.builds(
    s.ScalingRules,
    st.none() | int32,
    st.none() | text,
    # An empty list is encoded as null, as in Kubernetes.
    st.none() | st.lists(st.builds(s.Policy, text, int32, int32), min_size=1, max_size=2).map(tuple),
    st.none() | quantities,
)
specs = st.builds(
    s.Spec,
    st.builds(s.ObjectReference, text, text, text),
    st.none() | int32,
    int32,
    st.none() | st.lists(metrics, min_size=1, max_size=2).map(tuple),
    st.none() | st.builds(s.Behavior, st.none() | rules, st.none() | rules),
    st.none() | text,
    st.none() | st.integers(0, 10**9).map(lambda seconds: NOON + timedelta(seconds=seconds)),
)


@given(specs)
def test_spec_is_equal_after_encoding_and_decoding(spec):
    assert decode_spec(encode(spec), strict=True) == spec


@given(
    st.builds(
        t.Status, int32, st.none() | st.just((t.UNREAD,)), st.none() | st.integers(0, 9), st.none() | st.just(NOON)
    )
)
def test_status_is_equal_after_encoding_and_decoding(status):
    assert decode_status(encode(status), strict=True) == status


def test_readable_fields_of_a_damaged_status_are_kept():
    status = {
        "desiredReplicas": 4,
        "lastScaleTime": "0000-01-01T00:00:00Z",
        "conditions": [{"type": "ScaledToZero", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "controllerState": "v1;at=2026-01-01T00:00:00Z;rec=;up=;down=",
    }

    decoded = decode_stored({"metadata": {"name": "web"}, "spec": {"maxReplicas": 5}, "status": status})

    assert (decoded.spec.max_replicas, decoded.status.desired_replicas, decoded.status.last_scale_time) == (5, 4, None)
    assert decoded.status.condition("ScaledToZero") is not None
    assert (decoded.status.controller_state or "").startswith("unreadable status: lastScaleTime: must be a time")


def test_stored_object_with_an_invalid_spec_is_not_decoded():
    with pytest.raises(DecodeError, match=r"spec\.maxReplicas"):
        decode_stored({"spec": {"maxReplicas": "five"}, "status": {"desiredReplicas": "x"}})

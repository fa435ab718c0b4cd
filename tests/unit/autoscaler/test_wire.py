from datetime import UTC, datetime, timedelta, timezone

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
    decode_autoscaler_json,
    decode_spec,
    decode_status,
    encode_spec,
    encode_status,
    print_time,
)

NOON = datetime(2000, 1, 1, 12, tzinfo=UTC)


def with_target(**target):
    return {"spec": {"metrics": [{"type": "Pods", "pods": {"target": target}}]}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            {"spec": {"minReplicas": True}},
            "spec.minReplicas: must be a whole number, is true or false",
            id="a truth value is no number",
        ),
        pytest.param(
            {"spec": {"minReplicas": "3"}},
            "spec.minReplicas: must be a whole number, is text",
            id="a number in quotes is no number",
        ),
        pytest.param(
            {"spec": {"maxReplicas": 1.0}},
            "spec.maxReplicas: must be a whole number, is a number with a fraction",
            id="even a fraction of zero is a fraction",
        ),
        pytest.param(
            {"spec": {"maxReplicas": 3_000_000_000}},
            "spec.maxReplicas: must be at most 2147483647",
            id="replicas have 32 bits",
        ),
        pytest.param(
            {"spec": {"maxReplicas": -3_000_000_000}},
            "spec.maxReplicas: must be at least -2147483648",
            id="replicas have 32 bits below zero, too",
        ),
        pytest.param(
            {"spec": {"metrics": [{"external": {"fallback": {"failureDurationSeconds": 2**63}}}]}},
            "spec.metrics[0].external.fallback.failureDurationSeconds: must be at most 9223372036854775807",
            id="a failure duration has 64 bits",
        ),
        pytest.param({"spec": []}, "spec: must be an object, is a list", id="a spec is an object"),
        pytest.param([], "must be an object, is a list", id="a document is an object"),
        pytest.param(
            with_target(value="1.5.5"),
            'spec.metrics[0].pods.target.value: must be a quantity such as "500m", "2" or "1Gi": quantities must match'
            " the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="a quantity must parse",
        ),
        pytest.param(
            with_target(value=True),
            "spec.metrics[0].pods.target.value: must be a quantity, is true or false",
            id="a truth value is no quantity",
        ),
        pytest.param(
            with_target(value={}),
            "spec.metrics[0].pods.target.value: must be a quantity, is an object",
            id="an object is no quantity",
        ),
        pytest.param(
            {"spec": {"pausedUntil": "2000-01-01T00:00:00"}},
            "spec.pausedUntil: must be a time such as 2000-01-01T02:00:00Z, with its time zone",
            id="a time needs its zone",
        ),
        pytest.param(
            {"metadata": {"labels": {"app": "web", "version": 1}}},
            "metadata.labels.version: must be text, is a whole number; put it in quotes",
            id="a label's value that YAML reads as a number is named",
        ),
        pytest.param(
            {"metadata": {"labels": {1: "web"}}},
            "metadata.labels: each key must be text, is a whole number; put it in quotes",
            id="a label's key that YAML reads as a number is reported",
        ),
        pytest.param(
            {"spec": {"metrics": [{}, {"pods": {"metric": {"selector": {"matchLabels": {"a": False}}}}}]}},
            "spec.metrics[1].pods.metric.selector.matchLabels.a: must be text, is true or false; put it in quotes",
            id="an entry deep in a list is named",
        ),
    ],
)
def test_a_wrong_document_is_refused_with_its_path(document, message):
    with pytest.raises(DecodeError) as caught:
        decode_autoscaler(document)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(b'{"spec":', "must be one JSON object: Input data was truncated", id="half a document"),
        pytest.param(
            b'{"metadata":{"name":1.5}}',
            "metadata.name: must be text, is a number with a fraction; put it in quotes",
            id="the wrong type",
        ),
    ],
)
def test_wrong_json_text_is_refused(text, message):
    with pytest.raises(DecodeError) as caught:
        decode_autoscaler_json(text)

    assert str(caught.value) == message


def test_text_that_is_not_unicode_is_refused():
    with pytest.raises(DecodeError, match="must be one JSON object"):
        decode_autoscaler_json(b'{"metadata":{"name":"\xff"}}')


def test_null_means_absent_wherever_it_stands():
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


def test_null_does_not_hide_what_is_wrong_elsewhere():
    with pytest.raises(DecodeError, match=r"^spec.maxReplicas: must be a whole number, is text$"):
        decode_autoscaler({"metadata": None, "spec": {"maxReplicas": "many", "metrics": None}})


def test_a_null_document_is_an_empty_one():
    assert decode_spec(None) == s.Spec()


def test_a_missing_number_in_a_list_of_null_is_zero():
    assert decode_spec({"behavior": {"scaleUp": {"policies": [None]}}, "maxReplicas": None}).behavior == s.Behavior(
        scale_up=s.ScalingRules(policies=(s.Policy(),))
    )


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        pytest.param('"500m"', "500m", id="text"),
        pytest.param('" 2 "', "2", id="text with spaces around it"),
        pytest.param("5", "5", id="a whole number"),
        pytest.param("1.5", "1500m", id="a fraction"),
        pytest.param("1E3", "1E3", id="an exponent keeps its text"),
    ],
)
@pytest.mark.parametrize("other", [pytest.param("1", id="fast"), pytest.param("null", id="beside a null")])
def test_a_quantity_may_be_text_or_a_number(written, printed, other):
    text = f'{{"spec":{{"maxReplicas":{other},"metrics":[{{"pods":{{"target":{{"value":{written}}}}}}}]}}}}'

    metric = decode_autoscaler_json(text).spec.metrics[0]

    assert metric.pods.target.value.canonical() == Quantity.parse(printed).canonical()
    assert metric.pods.target.value.format == Quantity.parse(printed).format


@pytest.mark.parametrize(
    ("number", "value"),
    [
        pytest.param(1000.0, "1000", id="a float that is whole"),
        pytest.param(0.25, "250m", id="a float that is not"),
        pytest.param(7, "7", id="an integer"),
    ],
)
def test_a_quantity_in_a_parsed_document_may_be_a_number(number, value):
    spec = decode_spec({"behavior": {"scaleUp": {"tolerance": number}}})

    assert spec.behavior.scale_up.tolerance == Quantity.parse(value)


def test_unknown_keys_are_ignored_unless_asked_about():
    assert decode_spec({"maxReplica": 3}) == s.Spec()


def test_every_unknown_key_is_reported_with_the_nearest_right_one():
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

    assert [str(fault) for fault in caught.value.faults] == [
        "spec.minReplica: is not a field here; did you mean minReplicas?",
        "spec.metrics[0].resource.target.averageutilisation: is not a field here; did you mean averageUtilization?",
        (
            "spec.metrics[0].frobnicate: is not a field here;"
            " the fields are type, object, pods, resource, containerResource, external"
        ),
        "spec.maxReplicas: must be a whole number, is text",
    ]


def test_unknown_keys_alone_are_enough_to_refuse():
    with pytest.raises(DecodeError, match=r"^conditionz: is not a field here; did you mean conditions\?$"):
        decode_status({"conditionz": []}, strict=True)


def test_a_document_of_known_keys_passes_the_strict_reading():
    assert decode_spec({"maxReplicas": 3, "metrics": []}, strict=True).max_replicas == 3


def test_an_empty_spec_prints_what_kubernetes_always_prints():
    assert encode_spec(s.Spec()) == {"scaleTargetRef": {"kind": "", "name": ""}, "maxReplicas": 0}


def test_an_empty_status_prints_what_kubernetes_always_prints():
    assert encode_status(t.Status()) == {"desiredReplicas": 0, "currentMetrics": None}


def test_empty_sources_print_their_parts():
    spec = s.Spec(metrics=(s.Metric(object=s.ObjectSource(), resource=s.ResourceSource()),))

    assert encode_spec(spec)["metrics"] == [
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


def test_what_was_written_as_nothing_is_printed_where_absence_means_something_else():
    rules = s.ScalingRules(stabilization_window_seconds=0, select_policy="", policies=())

    assert encode_spec(s.Spec(min_replicas=0, behavior=s.Behavior(scale_up=rules))) == {
        "scaleTargetRef": {"kind": "", "name": ""},
        "minReplicas": 0,
        "maxReplicas": 0,
        "behavior": {"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": ""}},
    }


def test_a_selector_prints_its_labels_and_expressions():
    selector = LabelSelector({"app": "web"}, (LabelSelectorRequirement("tier", "Exists"),))
    spec = s.Spec(metrics=(s.Metric(pods=s.PodsSource(metric=s.MetricIdentifier("qps", selector))),))

    assert encode_spec(spec)["metrics"][0]["pods"]["metric"] == {
        "name": "qps",
        "selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    }


def test_a_status_prints_times_quantities_and_unread_metrics():
    status = t.Status(
        desired_replicas=3,
        current_metrics=(t.UNREAD, t.MetricStatus("Resource", resource=t.ResourceMetricStatus("cpu", t.MetricValue()))),
        last_scale_time=NOON,
        conditions=(t.Condition("AbleToScale", "True", None, "ok"),),
    )

    assert encode_status(status) == {
        "desiredReplicas": 3,
        "currentMetrics": [{"type": ""}, {"type": "Resource", "resource": {"name": "cpu", "current": {}}}],
        "lastScaleTime": "2000-01-01T12:00:00Z",
        "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": None, "reason": "ok"}],
    }


def test_a_time_prints_in_utc_and_whole_seconds():
    at = datetime(2000, 1, 1, 4, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=2)))

    assert print_time(at) == "2000-01-01T02:00:00Z"


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
    # An empty list is printed as none, as in Kubernetes.
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
def test_a_spec_survives_printing_and_reading(spec):
    assert decode_spec(encode_spec(spec), strict=True) == spec


@given(
    st.builds(
        t.Status, int32, st.none() | st.just((t.UNREAD,)), st.none() | st.integers(0, 9), st.none() | st.just(NOON)
    )
)
def test_a_status_survives_printing_and_reading(status):
    assert decode_status(encode_status(status), strict=True) == status

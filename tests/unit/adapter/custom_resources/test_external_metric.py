from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import inspect

from adapter.backends.configuration import BackendEntry, ExternalMetricAccess
from adapter.backends.http.settings import Http
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.rabbitmq.settings import RabbitMq
from adapter.custom_resources.external_metric import ExternalMetricSpec, rule_from_object
from adapter.decoding.problem import ConfigInvalid
from adapter.rules.rule import Aggregation, Namespacing, Rule, TenantRule

PROMETHEUS = Prometheus(url="http://prometheus:9090")
BACKENDS = {
    "open": BackendEntry(external_metrics=ExternalMetricAccess(), prometheus=PROMETHEUS),
    "labelled": BackendEntry(external_metrics=ExternalMetricAccess(namespace_label="kube_ns"), prometheus=PROMETHEUS),
    "some": BackendEntry(external_metrics=ExternalMetricAccess(namespaces=("bank",)), prometheus=PROMETHEUS),
    "closed": BackendEntry(prometheus=PROMETHEUS),
    "rabbits": BackendEntry(
        external_metrics=ExternalMetricAccess(namespace_label="vhost"), rabbitmq=RabbitMq(url="http://x")
    ),
    "written": BackendEntry(external_metrics=ExternalMetricAccess(namespaces=("shop",)), http=Http(url="http://x")),
}
CRD = yaml.safe_load((Path(__file__).parents[4] / "manifests" / "crds" / "externalmetrics.yaml").read_text())
SPEC_SCHEMA = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
UNAVAILABLE = (
    "spec.backend: backend '{}' is not available to ExternalMetrics in namespace 'shop'; "
    "available backends: labelled, open, rabbits, written; see externalMetrics of a backend"
)


def converted(**spec: Any) -> Rule:
    document = {"metadata": {"namespace": "shop", "name": "queue"}, "spec": spec}
    return rule_from_object(document, BACKENDS)


def problems(**spec: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigInvalid) as raised:
        converted(**spec)
    return raised.value.messages


def test_object_becomes_a_rule_whose_query_is_restricted_to_its_namespace():
    rule = converted(backend="open", query="sum(x) by (queue)", aggregation="max")

    assert rule == TenantRule(
        "queue",
        namespaces=("shop",),
        backend="open",
        query='sum by (queue) (x{namespace="shop"})',
        namespace=Namespacing(),
        aggregation=Aggregation.MAX,
        restricted_by="namespace",
    )


def test_namespace_label_is_that_of_the_backend():
    assert converted(backend="labelled", query="x").query == 'x{kube_ns="shop"}'


def test_rule_with_parameters_serves_only_series_with_its_namespace_label():
    assert converted(backend="rabbits", parameters={"queue": "a"}).namespacing == Namespacing(label="vhost")
    document = {"metadata": {"namespace": "shop", "name": "queue"}, "spec": {"backend": "x", "parameters": {"a": 1}}}
    assert rule_from_object(document, None).namespacing == Namespacing(label="namespace")


def test_backend_whose_rules_control_labels_is_not_restricted_within_allowed_namespaces():
    rule = converted(backend="written", parameters={"path": "/queues"})
    assert rule.namespacing == Namespacing()


def test_parameters_are_validated_by_the_backend():
    messages = problems(backend="written", parameters={"pth": "/queues"})
    assert messages == ("spec.parameters.pth: unknown key; did you mean 'path'?",)
    assert problems(backend="open", parameters={"a": 1}) == (
        "spec.parameters: not supported by prometheus; use query, in PromQL",
    )


def test_metric_name_can_differ_from_the_object_name():
    assert converted(metric="Queue_Depth", backend="open", query="x").name == "Queue_Depth"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"backend": "open", "qurey": "x"}, "spec.qurey: unknown key; did you mean 'query'?"),
        ({"backend": "closed", "query": "x"}, UNAVAILABLE.format("closed")),
        ({"backend": "some", "query": "x"}, UNAVAILABLE.format("some")),
        ({"backend": "opne", "query": "x"}, UNAVAILABLE.format("opne")),
        ({"backend": "open", "query": "x{"}, "spec.query: invalid PromQL: unexpected end of input inside braces"),
        ({"backend": "open", "query": "x", "interval": "4999ms"}, "spec.interval: must be at least 5s"),
        ({"backend": "open", "query": "x", "deadline": "999ms"}, "spec.deadline: must be at least 1s"),
        ({"backend": "open", "query": "x", "deadline": "61s"}, "spec.deadline: must be at most 1m"),
        ({"backend": "open", "query": "x", "maxSampleAge": "99999999h"}, "spec.maxSampleAge: must be at most 87600h"),
        ({"static": [{"value": 1, "age": "99999999h"}]}, "spec.static[0].age: must be at most 87600h"),
        ({"metric": "a/b", "static": [{"value": 1}]}, "spec.metric: 'a/b' may not contain '/'"),
        ({}, "spec.static: at least one series is required if no backend is set"),
    ],
)
def test_problem_has_its_path_in_the_object(spec: dict[str, Any], expected: str):
    assert problems(**spec) == (expected,)


@pytest.mark.parametrize("key", ["namespaces", "namespace", "series"])
def test_setting_reserved_for_operators_is_an_unknown_key(key: str):
    (problem,) = problems(backend="open", query="x", **{key: "bank"})

    assert problem.startswith(f"spec.{key}: unknown key")


def _code_limits(shape: inspect.Type) -> tuple[object, ...]:
    """Return the limits of a text, or of a list and its items, with the names of the schema."""
    if isinstance(shape, inspect.VarTupleType):
        return ("maxItems", shape.max_length, *_code_limits(shape.item_type))
    return ("maxLength", shape.max_length) if isinstance(shape, inspect.StrType) else ()


def _schema_limits(schema: dict[str, Any]) -> tuple[object, ...]:
    if schema["type"] == "array":
        return ("maxItems", schema["maxItems"], *_schema_limits(schema["items"]))
    return ("maxLength", schema["maxLength"]) if schema["type"] == "string" else ()


@pytest.mark.parametrize("field", ["metric", "aliases", "backend", "query", "static", "labels"])
def test_limits_of_the_schema_and_of_the_code_are_equal(field: str):
    shape = inspect.type_info(ExternalMetricSpec)
    assert isinstance(shape, inspect.StructType)
    (in_code,) = (each.type for each in shape.fields if each.encode_name == field)

    assert _code_limits(in_code) == _schema_limits(SPEC_SCHEMA["properties"][field])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"metric": "m" * 254}, "spec.metric: expected `str` of length <= 253"),
        ({"aliases": [f"a{n}" for n in range(17)]}, "spec.aliases: expected `array` of length <= 16"),
        ({"aliases": ["a" * 254]}, "spec.aliases[0]: expected `str` of length <= 253"),
        ({"labels": ["a"] * 65}, "spec.labels: expected `array` of length <= 64"),
        ({"static": [{"value": 1}] * 257}, "spec.static: expected `array` of length <= 256"),
    ],
)
def test_longer_texts_and_lists_are_rejected(spec: dict[str, Any], expected: str):
    assert problems(**({"static": [{"value": 1}]} | spec)) == (expected,)

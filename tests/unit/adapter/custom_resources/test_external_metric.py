from typing import Any

import pytest

from adapter.backends.configuration import BackendEntry, ExternalMetricAccess
from adapter.backends.http.settings import Http
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.rabbitmq.settings import RabbitMq
from adapter.custom_resources.external_metric import rule_from_object
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

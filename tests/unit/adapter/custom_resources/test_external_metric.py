from typing import Any

import pytest

from adapter.backends.configuration import BackendEntry, ForObjects
from adapter.backends.http.settings import Http
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.rabbitmq.settings import RabbitMq
from adapter.custom_resources.external_metric import rule_of
from adapter.errors import ConfigInvalid
from adapter.rules.rule import Aggregation, Namespacing, Rule

PROMETHEUS = Prometheus(url="http://prometheus:9090")
BACKENDS = {
    "open": BackendEntry(external_metrics=ForObjects(), prometheus=PROMETHEUS),
    "labelled": BackendEntry(external_metrics=ForObjects(namespace_label="kube_ns"), prometheus=PROMETHEUS),
    "some": BackendEntry(external_metrics=ForObjects(namespaces=("bank",)), prometheus=PROMETHEUS),
    "closed": BackendEntry(prometheus=PROMETHEUS),
    "rabbits": BackendEntry(external_metrics=ForObjects(namespace_label="vhost"), rabbitmq=RabbitMq(url="http://x")),
    "written": BackendEntry(external_metrics=ForObjects(namespaces=("shop",)), http=Http(url="http://x")),
}


def made(**spec: Any) -> Rule:
    document = {"metadata": {"namespace": "shop", "name": "queue"}, "spec": spec}
    return rule_of(document, BACKENDS)


def problems(**spec: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigInvalid) as refused:
        made(**spec)
    return refused.value.problems


def test_it_is_a_rule_for_its_namespace_whose_query_can_read_no_other():
    rule = made(backend="open", query="sum(x) by (queue)", aggregation="max")

    assert rule == Rule(
        "queue",
        namespaces=("shop",),
        backend="open",
        query='sum(x{namespace="shop"}) by (queue)',
        namespace=Namespacing(),
        aggregation=Aggregation.MAX,
    )


def test_the_label_is_the_backends_affair():
    assert made(backend="labelled", query="x").query == 'x{kube_ns="shop"}'


def test_parts_cannot_be_confined_so_foreign_series_are_left_out():
    assert made(backend="rabbits", parameters={"queue": "a"}).namespacing == Namespacing(label="vhost")
    document = {"metadata": {"namespace": "shop", "name": "queue"}, "spec": {"backend": "x", "parameters": {"a": 1}}}
    assert rule_of(document, None).namespacing == Namespacing(label="namespace")


def test_where_a_rule_writes_the_labels_the_operator_names_the_namespaces_and_they_see_all_of_it():
    rule = made(backend="written", parameters={"path": "/queues"})
    assert rule.namespacing == Namespacing()


def test_parameters_are_those_of_the_backend():
    told = problems(backend="written", parameters={"pth": "/queues"})
    assert told == ("spec.parameters.pth: unknown key; did you mean 'path'?",)
    assert problems(backend="open", parameters={"a": 1}) == (
        "spec.parameters: prometheus is asked with a query in PromQL",
    )


def test_the_metric_may_have_a_name_that_no_object_can_have():
    assert made(metric="Queue_Depth", backend="open", query="x").name == "Queue_Depth"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"backend": "open", "qurey": "x"}, "spec.qurey: unknown key; did you mean 'query'?"),
        (
            {"backend": "closed", "query": "x"},
            "spec.backend: 'closed' is not open to ExternalMetrics of this namespace",
        ),
        ({"backend": "some", "query": "x"}, "spec.backend: 'some' is not open to ExternalMetrics of this namespace"),
        (
            {"backend": "opne", "query": "x"},
            "spec.backend: there is no backend 'opne'; the backends are closed, labelled, open, rabbits, some, written",
        ),
        ({"backend": "open", "query": "x{"}, "spec.query: '}' is missing"),
        ({"backend": "open", "query": "x", "interval": "10ms"}, "spec.interval: must be at least 1s"),
        ({"backend": "open", "query": "x", "maxSampleAge": "99999999h"}, "spec.maxSampleAge: must be at most 87600h"),
        ({"static": [{"value": 1, "age": "99999999h"}]}, "spec.static[0].age: must be at most 87600h"),
        ({"metric": "a/b", "static": [{"value": 1}]}, "spec.metric: 'a/b' may not contain '/'"),
        ({}, "spec.static: at least one series is needed"),
    ],
)
def test_a_problem_has_the_path_that_it_has_in_the_object(spec: dict[str, Any], expected: str):
    assert problems(**spec) == (expected,)


@pytest.mark.parametrize("key", ["namespaces", "namespace", "series"])
def test_what_only_an_operator_may_decide_is_no_key_here(key: str):
    (problem,) = problems(backend="open", query="x", **{key: "bank"})

    assert problem.startswith(f"spec.{key}: unknown key")

"""The message of a read without a matching series, for every backend kind and every reason."""

from collections.abc import Mapping
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from adapter.backends.configuration import BackendEntry, backend_kinds, selection
from adapter.backends.http.settings import Http
from adapter.backends.rabbitmq.settings import RabbitMq
from adapter.config.loading import decode_without_invalid_rules
from adapter.custom_resources.external_metric import rule_from_spec
from adapter.decoding import documents
from adapter.metrics.no_match import describe_no_match
from adapter.metrics.pipeline import MetricPipeline
from adapter.metrics.read_history import ReadKey
from adapter.metrics.snapshot import Snapshot
from adapter.rules.rule import Namespacing, Rule, TenantRule
from adapter.telemetry import Telemetry
from autoscaler.values.selector import parse
from tests.fakes.backend import BEGINNING, ScriptedBackend, loop_clock, raw

QUERY = "orders"


def message(rule: Rule, selector: str = "", *series: Mapping[str, str], namespace: str = "shop") -> str:
    snapshot = Snapshot((raw(1, BEGINNING, **labels) for labels in series), BEGINNING)
    return describe_no_match(ReadKey(namespace, rule.name, parse(selector)), rule, rule.query, snapshot)


def shop_rule(query: str) -> TenantRule:
    entry = documents.decode({"prometheus": {"url": "http://p"}, "externalMetrics": {}}, BackendEntry)
    return rule_from_spec({"backend": "main", "query": query}, "queue", "shop", {"main": entry})


OPERATOR = Rule("queue", backend="main", query=QUERY)
SHARED = Rule("queue", backend="main", query=QUERY, namespace=Namespacing())
LABELLED = TenantRule("queue", namespaces=("shop",), backend="main", namespace=Namespacing("vhost"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(message(SHARED), "the query returned no series: orders", id="no series"),
        pytest.param(
            message(OPERATOR, "", {"namespace": "bank"}),
            "no series of namespace 'shop' (label namespace), to which reads are restricted: orders",
            id="series of other namespaces",
        ),
        pytest.param(
            message(OPERATOR, "", {"a": "b"}),
            "no series has the label 'namespace' (namespace.label of the rule): orders",
            id="no namespace label",
        ),
        pytest.param(
            message(OPERATOR, "queue=x", {"namespace": "shop", "queue": "y"}, {"namespace": "bank", "queue": "x"}),
            "no series of namespace 'shop' (label namespace) matches queue=x; query: orders",
            id="requirement that no series of the namespace meets",
        ),
        pytest.param(
            message(SHARED, "queue=x,vhost=a", {"queue": "x", "vhost": "b"}, {"queue": "y", "vhost": "b"}),
            "no series matches vhost=a; query: orders",
            id="one of two requirements",
        ),
        pytest.param(
            message(SHARED, "queue=x,vhost=a", {"queue": "x", "vhost": "b"}, {"queue": "y", "vhost": "a"}),
            "no series matches all of queue=x,vhost=a; query: orders",
            id="each requirement, but not all of them",
        ),
        pytest.param(
            message(SHARED, "queu=x", {"queue": "x"}),
            "no series has the label 'queu'; query: orders",
            id="label that no series has",
        ),
        pytest.param(
            message(shop_rule("sum(orders)")),
            "the query, restricted to namespace 'shop' (label namespace), returned no series:"
            ' sum(orders{namespace="shop"})',
            id="restricted query of a tenant",
        ),
        pytest.param(
            message(LABELLED),
            "no series of namespace 'shop' (label vhost), to which reads are restricted",
            id="result that is restricted to a tenant",
        ),
        pytest.param(
            message(LABELLED, "", {"vhost": "bank"}),
            "no series of namespace 'shop' (label vhost), to which reads are restricted",
            id="the same message if there are series of other tenants",
        ),
    ],
)
def test_message_names_what_matches_nothing(text: str, expected: str):
    assert text == expected


def test_long_query_is_shortened_to_one_line():
    query = "sum(\n  orders\n) + " * 100
    text = message(Rule("queue", backend="main", query=query, namespace=Namespacing()))
    assert "\n" not in text
    assert text.startswith("the query returned no series: sum( orders ) +")
    assert len(text) < 350


@pytest.mark.parametrize("kind", [kind for kind in backend_kinds() if kind != "prometheus"])
def test_parameters_of_every_backend_name_what_they_select(kind: str):
    settings_type = next(each for each in BackendEntry.__annotations__[kind].__args__ if each is not type(None))
    assert set(settings_type.parameters_type.selecting) <= set(settings_type.parameters_type.__struct_fields__)
    assert settings_type.parameters_type.selecting


@pytest.mark.parametrize(
    ("entry", "parameters", "expected"),
    [
        pytest.param(
            BackendEntry(rabbitmq=RabbitMq(url="http://r")),
            {"queue": "orders"},
            "queue 'orders', vhost '/'",
            id="queue in the default vhost",
        ),
        pytest.param(
            BackendEntry(http=Http(url="http://h")),
            {"path": "/stats?token=secret", "value": "jobs"},
            "path '/stats', value 'jobs'",
            id="path without its query",
        ),
    ],
)
def test_selection_names_queue_and_vhost(entry: BackendEntry, parameters: dict[str, object], expected: str):
    assert selection(Rule("m", backend="b", parameters=parameters), entry) == expected


LABELS = st.dictionaries(st.sampled_from(["queue", "vhost", "namespace"]), st.sampled_from("xy"), max_size=3)


@hypothesis(deadline=None, max_examples=200)
@given(st.lists(LABELS, max_size=6), st.sampled_from(["", "queue=x", "queue=x,vhost=y", "!queue", "vhost"]))
def test_tenants_cannot_learn_about_series_of_other_namespaces(series: list[dict[str, str]], selector: str):
    rule = TenantRule("queue", namespaces=("x",), backend="main", namespace=Namespacing("namespace"))
    own = [labels for labels in series if labels.get("namespace") == "x"]
    assert message(rule, selector, *series, namespace="x") == message(rule, selector, *own, namespace="x")


@pytest.mark.looptime
async def test_read_of_a_missing_queue_names_queue_and_vhost():
    document = {
        "backends": {"main": {"rabbitmq": {"url": "http://r"}}},
        "rules": [{"name": "waiting", "backend": "main", "parameters": {"queue": "orders"}}],
    }
    loaded = decode_without_invalid_rules(document)
    async with aclosing(MetricPipeline(loaded, lambda *_: ScriptedBackend(), loop_clock, Telemetry())) as pipeline:
        trace = await pipeline.reader.read("shop", "waiting", parse(""))
    assert str(trace.error) == (
        "metric 'waiting': main: no series: the query returned no series: queue 'orders', vhost '/'"
    )

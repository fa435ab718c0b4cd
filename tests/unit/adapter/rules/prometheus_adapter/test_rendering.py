"""Golden cases: the queries that prometheus-adapter generates from a template, a selector and a namespace."""

import pytest

from adapter.rules.prometheus_adapter.conversion import convert_rules, parse_file
from adapter.rules.prometheus_adapter.settings import PrometheusAdapterFile
from adapter.rules.promql.matchers import NotExpressible
from adapter.rules.query_builder import render_query
from adapter.rules.rule import Rule
from autoscaler.values.selector import parse

SETTINGS = PrometheusAdapterFile("prometheus-adapter.yaml", "prometheus")

SUM = "sum(<<.Series>>{<<.LabelMatchers>>})"
BY_NAMESPACE = "resources: {overrides: {namespace: {resource: namespace}}}"
NOT_NAMESPACED = "resources: {namespaced: false}"


def imported(template: str, resources: str) -> Rule:
    text = f"externalRules:\n- seriesQuery: lag\n  {resources}\n  metricsQuery: '{template}'\n"
    (rule,) = convert_rules(parse_file(text), {}, SETTINGS)
    return rule


@pytest.mark.parametrize(
    ("template", "selector", "resources", "expected"),
    [
        pytest.param(SUM, "topic=t", BY_NAMESPACE, 'sum(lag{topic="t",namespace="shop"})', id="selector"),
        pytest.param(SUM, "", BY_NAMESPACE, 'sum(lag{namespace="shop"})', id="no selector"),
        pytest.param(SUM, "", NOT_NAMESPACED, "sum(lag{})", id="no selector and no namespace"),
        pytest.param(
            SUM,
            "topic in (b,a),!canary,env!=dev",
            NOT_NAMESPACED,
            'sum(lag{canary="",env!="dev",topic=~"a|b"})',
            id="set operators, sorted by key",
        ),
        pytest.param(
            SUM, "topic in (a.b)", NOT_NAMESPACED, 'sum(lag{topic=~"a.b"})', id="values of in are regular expressions"
        ),
        pytest.param(
            SUM, "topic notin (a)", NOT_NAMESPACED, 'sum(lag{topic!~"a"})', id="values of notin are regular expressions"
        ),
        pytest.param(SUM, "topic", NOT_NAMESPACED, 'sum(lag{topic!=""})', id="exists"),
        pytest.param(
            f"{SUM} by (<<.GroupBy>>)", "topic=t", NOT_NAMESPACED, 'sum(lag{topic="t"}) by ()', id="GroupBy is empty"
        ),
        pytest.param(
            'max(q{name="<<index .LabelValuesByName "topic">>"})',
            "topic=t",
            NOT_NAMESPACED,
            'max(q{name="t"})',
            id="LabelValuesByName",
        ),
        pytest.param(
            SUM,
            "namespace=queue",
            BY_NAMESPACE,
            'sum(lag{namespace="queue",namespace="shop"})',
            id="selector on the namespace label is added to the namespace",
        ),
        pytest.param(SUM, "a.b/c=x", NOT_NAMESPACED, 'sum(lag{a.b/c="x"})', id="key is not escaped"),
        pytest.param(
            SUM,
            "",
            'resources: {template: "kube_<<.Group>>_<<.Resource>>"}',
            'sum(lag{kube__namespace="shop"})',
            id="namespace label from a template",
        ),
        pytest.param("sum(lag)", "topic=t", BY_NAMESPACE, "sum(lag)", id="template without LabelMatchers"),
    ],
)
def test_query_equals_the_one_of_prometheus_adapter(
    template: str, selector: str, resources: str, expected: str
) -> None:
    assert render_query(imported(template, resources), "shop", parse(selector)) == expected


def test_numeric_comparison_is_rejected() -> None:
    with pytest.raises(NotExpressible, match="compares numbers"):
        render_query(imported(SUM, NOT_NAMESPACED), "shop", parse("n>5"))


def test_native_template_escapes_selector_values() -> None:
    rule = Rule("lag", backend="prometheus", query="sum(lag{<<.LabelMatchers>>})")
    assert render_query(rule, "shop", parse("topic in (a.b,c)")) == 'sum(lag{topic=~"a\\\\.b|c",namespace="shop"})'

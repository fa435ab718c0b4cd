"""The golden cases: what prometheus-adapter makes of a template, a selector and a namespace, and so do we."""

import pytest

from adapter.rules.prometheus_adapter.conversion import Defaults, read, rules
from adapter.rules.promql.matchers import NotExpressible
from adapter.rules.query_template import rendered
from adapter.rules.rule import Rule
from autoscaler.values.selector import parse

SUM = "sum(<<.Series>>{<<.LabelMatchers>>})"
BY_NAMESPACE = "resources: {overrides: {namespace: {resource: namespace}}}"
EVERYWHERE = "resources: {namespaced: false}"


def imported(template: str, resources: str) -> Rule:
    text = f"externalRules:\n- seriesQuery: lag\n  {resources}\n  metricsQuery: '{template}'\n"
    (made,) = rules(read(text), {}, Defaults("prometheus"))
    return made


@pytest.mark.parametrize(
    ("template", "selector", "resources", "expected"),
    [
        pytest.param(SUM, "topic=t", BY_NAMESPACE, 'sum(lag{topic="t",namespace="shop"})', id="a selector"),
        pytest.param(SUM, "", BY_NAMESPACE, 'sum(lag{namespace="shop"})', id="no selector"),
        pytest.param(SUM, "", EVERYWHERE, "sum(lag{})", id="neither selector nor namespace"),
        pytest.param(
            SUM,
            "topic in (b,a),!canary,env!=dev",
            EVERYWHERE,
            'sum(lag{canary="",env!="dev",topic=~"a|b"})',
            id="sets, in order of their keys",
        ),
        pytest.param(SUM, "topic in (a.b)", EVERYWHERE, 'sum(lag{topic=~"a.b"})', id="in is a regular expression"),
        pytest.param(SUM, "topic notin (a)", EVERYWHERE, 'sum(lag{topic!~"a"})', id="and so is notin"),
        pytest.param(SUM, "topic", EVERYWHERE, 'sum(lag{topic!=""})', id="exists"),
        pytest.param(
            f"{SUM} by (<<.GroupBy>>)", "topic=t", EVERYWHERE, 'sum(lag{topic="t"}) by ()', id="nothing to group by"
        ),
        pytest.param(
            'max(q{name="<<index .LabelValuesByName "topic">>"})',
            "topic=t",
            EVERYWHERE,
            'max(q{name="t"})',
            id="values",
        ),
        pytest.param(
            SUM,
            "namespace=queue",
            BY_NAMESPACE,
            'sum(lag{namespace="queue",namespace="shop"})',
            id="a selector cannot leave its namespace",
        ),
        pytest.param(SUM, "a.b/c=x", EVERYWHERE, 'sum(lag{a.b/c="x"})', id="a key goes as it is"),
        pytest.param(
            SUM,
            "",
            'resources: {template: "kube_<<.Group>>_<<.Resource>>"}',
            'sum(lag{kube__namespace="shop"})',
            id="the namespace's label by template",
        ),
        pytest.param("sum(lag)", "topic=t", BY_NAMESPACE, "sum(lag)", id="a template without matchers ignores them"),
    ],
)
def test_the_query_is_the_one_that_prometheus_adapter_sends(
    template: str, selector: str, resources: str, expected: str
) -> None:
    assert rendered(imported(template, resources), "shop", parse(selector)) == expected


def test_comparing_numbers_is_refused() -> None:
    with pytest.raises(NotExpressible, match="compares numbers"):
        rendered(imported(SUM, EVERYWHERE), "shop", parse("n>5"))


def test_a_template_of_our_own_means_what_the_selector_means() -> None:
    rule = Rule("lag", backend="prometheus", query="sum(lag{<<.LabelMatchers>>})")
    assert rendered(rule, "shop", parse("topic in (a.b,c)")) == 'sum(lag{topic=~"a\\\\.b|c",namespace="shop"})'

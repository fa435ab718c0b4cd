"""A file of prometheus-adapter in all its shapes, the names it gives, and what is told about each rule."""

import textwrap

import pytest

from adapter.errors import ConfigInvalid
from adapter.rules.prometheus_adapter.conversion import Defaults, Import, read, rules

BARE = """
rules:
- seriesQuery: custom
externalRules:
- seriesQuery: 'lag{topic!=""}'
  resources: {namespaced: false}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>})
resourceRules: {cpu: {}}
"""
IN_A_CONFIGMAP = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: adapter-config}}
data:
  config.yaml: |
{textwrap.indent(BARE, "    ")}
"""
IN_CHART_VALUES = """
prometheus: {url: http://prometheus}
rules:
  default: true
  custom: [{seriesQuery: custom}]
  resource: {cpu: {}}
  external:
  - seriesQuery: 'lag{topic!=""}'
    resources: {namespaced: false}
    metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>})
"""
IN_A_SUBCHART = "prometheus-adapter:\n" + textwrap.indent(IN_CHART_VALUES, "  ")
SEVERAL = f"kind: Service\n---\n{IN_A_CONFIGMAP}"


def names(found: Import, **known: list[str]) -> dict[str, str]:
    return {rule.name: rule.series for rule in rules(found, known, Defaults("prometheus"))}


def told(text: str) -> list[str]:
    return [str(finding) for finding in read(text).findings if finding.path != "externalRules"]


def rule(**parts: str) -> str:
    whole = {"seriesQuery": "lag", "resources": "{namespaced: false}", "metricsQuery": "sum(lag{<<.LabelMatchers>>})"}
    lines = [f"  {key}: {value}" for key, value in {**whole, **parts}.items() if value]
    return "externalRules:\n-" + "\n".join(lines)[1:] + "\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(BARE, id="its own file"),
        pytest.param(IN_A_CONFIGMAP, id="a ConfigMap"),
        pytest.param(IN_CHART_VALUES, id="the chart's values"),
        pytest.param(IN_A_SUBCHART, id="the values of a chart around it"),
        pytest.param(SEVERAL, id="one of several documents"),
    ],
)
def test_every_shape_gives_the_same_rules_and_says_what_is_not_used(text: str) -> None:
    found = read(text)
    assert names(found) == {"lag": "lag"}
    assert [str(each) for each in found.findings] == [
        "note: rules: not used: 1 of custom.metrics.k8s.io, which is not ours to serve",
        "note: resourceRules: not used: 1 of metrics.k8s.io, which is not ours to serve",
        (
            "note: externalRules: the values of in and notin are regular expressions, as they were: "
            "'a.b' also matches 'axb'"
        ),
    ]


@pytest.mark.parametrize("text", ["{}", "[]", "kind: Service", "", "a: {b: {c: {rules: []}}}"])
def test_what_is_no_such_file_is_refused(text: str) -> None:
    with pytest.raises(ConfigInvalid, match="not a configuration of prometheus-adapter"):
        read(text)


def test_what_is_not_yaml_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="not YAML"):
        read("a: [")


@pytest.mark.parametrize(
    ("query", "name", "series", "expected"),
    [
        pytest.param("foo_total", "{}", "foo_total", "foo_total", id="no mapping"),
        pytest.param("foo_total", "{matches: '^(.*)_total$'}", "foo_total", "foo", id="the only group"),
        pytest.param("x", "{matches: '(.*)', as: '${1}_per_second'}", "x", "x_per_second", id="braces"),
        pytest.param("x", "{matches: '(.*)', as: 'a$1_per_second'}", "x", "a", id="a group of that name is empty"),
        pytest.param("x", "{as: 'a$$b'}", "x", "a$b", id="a dollar"),
        pytest.param("a_b", "{matches: '(?P<first>[a-z])_(?P<then>.)', as: '$then-$first'}", "a_b", "b-a", id="names"),
        pytest.param("x", "{matches: '[[:lower:]]+'}", "x", "x", id="a class in POSIX' words"),
        pytest.param("x", "{matches: '(.)', as: '$7y'}", "x", "", id="beyond the groups"),
    ],
)
def test_a_series_name_becomes_a_metrics_name_as_in_go(query: str, name: str, series: str, expected: str) -> None:
    found = read(rule(seriesQuery=query, name=name))
    assert names(found) == ({expected: series} if expected else {})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("foo", {"foo"}, id="a name"),
        pytest.param('\'{__name__="foo",a!=""}\'', {"foo"}, id="a matcher"),
        pytest.param("'{__name__=~\"^foo$\"}'", {"foo"}, id="a regular expression for one"),
        pytest.param("'{__name__=~\"^foo.*\"}'", set(), id="a regular expression for many"),
        pytest.param("'{job=\"x\"}'", set(), id="no name"),
    ],
)
def test_a_query_for_one_name_needs_no_discovery(query: str, expected: set[str]) -> None:
    found = read(rule(seriesQuery=query))
    assert set(names(found)) == expected
    assert bool(found.questions) is not bool(expected)


def test_strict_discovery_asks_for_every_name() -> None:
    assert read(rule(), strict_discovery=True).questions == {"lag"}


def test_discovered_names_pass_the_filters_and_the_last_of_one_name_wins() -> None:
    text = rule(
        seriesQuery="'{job=\"x\"}'",
        seriesFilters="[{is: _total$}, {isNot: ^go_}]",
        name="{matches: ^(.).*_total$}",
    )
    found = read(text)
    (question,) = found.questions
    known = {question: ["ab_total", "ac_total", "b_total", "go_total", "b"]}
    assert {each.name: each.series for each in rules(found, known, Defaults("p"))} == {"a": "ac_total", "b": "b_total"}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({}, [], id="nothing to say"),
        pytest.param(
            {"seriesQuery": "'{job=\"x\"}'", "name": "{as: x}"},
            [
                "note: externalRules[0].seriesQuery: names no single series; Prometheus is asked for them periodically",
                "warning: externalRules[0].name.as: gives all its series one name; the last one wins",
            ],
            id="discovery, and names that collapse",
        ),
        pytest.param(
            {"name": "{matches: '(.*)', as: $1_x}"},
            [
                "error: externalRules[0].name: must not be empty",
                "warning: externalRules[0].name.as: '$1_x' refers to a group of that name; meant: '${1}_x'?",
            ],
            id="a dollar glued to what follows",
        ),
        pytest.param(
            {"seriesQuery": "LAG"},
            [
                "note: externalRules[0].name: an HPA asks for 'LAG' in lower case; here it is found all the same",
            ],
            id="upper case",
        ),
        pytest.param(
            {"resources": ""},
            [
                (
                    "error: externalRules[0].resources: nothing says which label holds the namespace; set namespaced: "
                    "false, a template, or an override"
                )
            ],
            id="no namespace label",
        ),
        pytest.param(
            {"metricsQuery": "sum(lag)"},
            [
                (
                    "warning: externalRules[0].metricsQuery: has no <<.LabelMatchers>>: selectors are ignored, and "
                    "every namespace reads the same"
                )
            ],
            id="no matchers",
        ),
        pytest.param(
            {"metricsQuery": "sum(lag{<<.LabelMatchers>>}) by (<<.GroupBy>>)"},
            [
                (
                    "warning: externalRules[0].metricsQuery: uses <<.GroupBy>>, which is empty for external metrics: "
                    "one series without labels"
                )
            ],
            id="grouping by nothing",
        ),
        pytest.param(
            {"metricsQuery": "'sum(lag{<<.LabelMatchers>>,a=\"b\"})'"},
            [
                (
                    "warning: externalRules[0].metricsQuery: is no query when there are no matchers; put "
                    "<<.LabelMatchers>> last in its braces"
                )
            ],
            id="a leading comma",
        ),
        pytest.param(
            {"metricsQuery": "a{<<.LabelMatchers>>} / b{<<.LabelMatchers>>}"},
            [
                (
                    "note: externalRules[0].metricsQuery: may answer with several series; a metric that several series "
                    "answer is their sum to an HPA"
                ),
                (
                    "warning: externalRules[0].metricsQuery: divides: with nothing below the line it is not a number, "
                    "which is an error here"
                ),
            ],
            id="several series, and a ratio",
        ),
        pytest.param(
            {"metricsQuery": "'lag{<<.LabelMatchers>>}[5m]'"},
            [
                (
                    "error: externalRules[0].metricsQuery: answers with a range or a text, not with one number for "
                    "each series"
                )
            ],
            id="a range",
        ),
        pytest.param(
            {"metricsQuery": ""},
            ["error: externalRules[0].metricsQuery: is missing: there is nothing to ask"],
            id="no query",
        ),
        pytest.param(
            {"metricsQuery": "<<.Foo>>"},
            [
                (
                    "error: externalRules[0].metricsQuery: the template is wrong: can't evaluate field Foo; there are "
                    "GroupBy, GroupBySlice, LabelMatchers, LabelValuesByName, Series"
                )
            ],
            id="a bad template",
        ),
        pytest.param(
            {"name": "{matches: '(a)(b)'}"},
            ["error: externalRules[0].name: name.as is needed: name.matches has 2 groups"],
            id="two groups",
        ),
        pytest.param(
            {"seriesFilters": "[{}]"},
            ["error: externalRules[0].name: seriesFilters: each needs one of is and isNot"],
            id="a filter of nothing",
        ),
        pytest.param(
            {"metricQuery": "x"},
            ["error: externalRules[0].metricQuery: unknown key; did you mean 'metricsQuery'?: not read"],
            id="a key that there is not",
        ),
    ],
)
def test_everything_worth_knowing_about_a_rule_is_told(parts: dict[str, str], expected: list[str]) -> None:
    assert told(rule(**parts)) == expected


def test_one_bad_rule_affects_no_other() -> None:
    good = rule(seriesQuery="good").removeprefix("externalRules:\n")
    assert names(read(rule(metricsQuery="") + good)) == {"good": "good"}


def test_of_two_rules_with_one_name_the_last_wins_and_that_is_told() -> None:
    other = rule(metricsQuery="max(lag{<<.LabelMatchers>>})").removeprefix("externalRules:\n")
    (made,) = rules(read(rule() + other), {}, Defaults("prometheus"))
    assert made.query == "max(lag{<<.LabelMatchers>>})"
    assert told(rule() + other) == [
        "warning: externalRules[1].name: 'lag' is also the name of externalRules[0]; this one wins"
    ]

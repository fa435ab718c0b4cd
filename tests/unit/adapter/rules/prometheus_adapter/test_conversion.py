"""Conversion of prometheus-adapter files: file formats, metric names and migration notes."""

import textwrap

import pytest

from adapter.decoding.problem import ConfigInvalid
from adapter.rules.prometheus_adapter.conversion import ImportedFile, convert_rules, parse_file
from adapter.rules.prometheus_adapter.settings import PrometheusAdapterFile

SETTINGS = PrometheusAdapterFile("prometheus-adapter.yaml", "prometheus")

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


def names(imported: ImportedFile) -> dict[str, str]:
    return {rule.name: rule.series for rule in convert_rules(imported, {}, SETTINGS)}


def rule_notes(text: str) -> list[str]:
    return [str(note) for note in parse_file(text).notes if note.path != "externalRules"]


def rule(**parts: str) -> str:
    defaults = {
        "seriesQuery": "lag",
        "resources": "{namespaced: false}",
        "metricsQuery": "sum(lag{<<.LabelMatchers>>})",
    }
    lines = [f"  {key}: {value}" for key, value in {**defaults, **parts}.items() if value]
    return "externalRules:\n-" + "\n".join(lines)[1:] + "\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(BARE, id="own configuration file"),
        pytest.param(IN_A_CONFIGMAP, id="ConfigMap"),
        pytest.param(IN_CHART_VALUES, id="Helm values"),
        pytest.param(IN_A_SUBCHART, id="Helm values of a parent chart"),
        pytest.param(SEVERAL, id="one of several documents"),
    ],
)
def test_every_file_format_yields_the_same_rules_and_notes(text: str) -> None:
    imported = parse_file(text)
    assert names(imported) == {"lag": "lag"}
    assert [str(note) for note in imported.notes] == [
        "note: rules: ignored: 1 for custom.metrics.k8s.io, an API that Steadyscale does not serve",
        "note: resourceRules: ignored: 1 for metrics.k8s.io, an API that Steadyscale does not serve",
        (
            "note: externalRules: values of in and notin are regular expressions, as in prometheus-adapter: "
            "'a.b' also matches 'axb'"
        ),
    ]


@pytest.mark.parametrize("text", ["{}", "[]", "kind: Service", "", "a: {b: {c: {rules: []}}}"])
def test_file_without_prometheus_adapter_rules_is_rejected(text: str) -> None:
    with pytest.raises(ConfigInvalid, match="not a prometheus-adapter configuration"):
        parse_file(text)


def test_invalid_yaml_is_rejected() -> None:
    with pytest.raises(ConfigInvalid, match="invalid YAML"):
        parse_file("a: [")


@pytest.mark.parametrize(
    ("query", "name", "series", "expected"),
    [
        pytest.param("foo_total", "{}", "foo_total", "foo_total", id="no name mapping"),
        pytest.param("foo_total", "{matches: '^(.*)_total$'}", "foo_total", "foo", id="single group"),
        pytest.param("x", "{matches: '(.*)', as: '${1}_per_second'}", "x", "x_per_second", id="group in braces"),
        pytest.param("x", "{matches: '(.*)', as: 'a$1_per_second'}", "x", "a", id="suffix is part of the group name"),
        pytest.param("x", "{as: 'a$$b'}", "x", "a$b", id="escaped dollar sign"),
        pytest.param(
            "a_b", "{matches: '(?P<first>[a-z])_(?P<then>.)', as: '$then-$first'}", "a_b", "b-a", id="named groups"
        ),
        pytest.param("x", "{matches: '[[:lower:]]+'}", "x", "x", id="POSIX character class"),
        pytest.param("x", "{matches: '(.)', as: '$7y'}", "x", "", id="group that does not exist"),
    ],
)
def test_metric_name_is_derived_from_series_name_as_in_go(query: str, name: str, series: str, expected: str) -> None:
    imported = parse_file(rule(seriesQuery=query, name=name))
    assert names(imported) == ({expected: series} if expected else {})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("foo", {"foo"}, id="name"),
        pytest.param('\'{__name__="foo",a!=""}\'', {"foo"}, id="matcher for the name"),
        pytest.param("'{__name__=~\"^foo$\"}'", {"foo"}, id="regular expression for one name"),
        pytest.param("'{__name__=~\"^foo.*\"}'", set(), id="regular expression for several names"),
        pytest.param("'{job=\"x\"}'", set(), id="no matcher for the name"),
    ],
)
def test_query_for_a_single_name_needs_no_discovery(query: str, expected: set[str]) -> None:
    imported = parse_file(rule(seriesQuery=query))
    assert set(names(imported)) == expected
    assert bool(imported.discovery_queries) is not bool(expected)


def test_strict_discovery_discovers_every_name() -> None:
    assert parse_file(rule(), strict_discovery=True).discovery_queries == {"lag"}


def test_discovered_series_are_filtered_and_the_last_of_equal_names_wins() -> None:
    text = rule(
        seriesQuery="'{job=\"x\"}'",
        seriesFilters="[{is: _total$}, {isNot: ^go_}]",
        name="{matches: ^(.).*_total$}",
    )
    imported = parse_file(text)
    (query,) = imported.discovery_queries
    discovered = {query: ["ab_total", "ac_total", "b_total", "go_total", "b"]}
    converted = convert_rules(imported, discovered, SETTINGS)
    assert {each.name: each.series for each in converted} == {"a": "ac_total", "b": "b_total"}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({}, [], id="no notes"),
        pytest.param(
            {"seriesQuery": "'{job=\"x\"}'", "name": "{as: x}"},
            [
                (
                    "note: externalRules[0].seriesQuery: does not name a single series; the series are listed from "
                    "Prometheus periodically"
                ),
                "warning: externalRules[0].name.as: gives all series the same name; only the last is served",
            ],
            id="discovery with equal names",
        ),
        pytest.param(
            {"name": "{matches: '(.*)', as: $1_x}"},
            [
                "error: externalRules[0].name: must not be empty",
                (
                    "warning: externalRules[0].name.as: '$1_x' refers to a group with a name that includes the suffix; "
                    "did you mean '${1}_x'?"
                ),
            ],
            id="group reference with a suffix",
        ),
        pytest.param(
            {"seriesQuery": "LAG"},
            [
                "note: externalRules[0].name: HPAs request 'LAG' in lower case; the rule is found regardless of case",
            ],
            id="upper case",
        ),
        pytest.param(
            {"resources": ""},
            [
                (
                    "error: externalRules[0].resources: the label of the namespace is not defined; set namespaced: "
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
                    "every namespace reads the same value"
                )
            ],
            id="no LabelMatchers",
        ),
        pytest.param(
            {"metricsQuery": "sum(lag{<<.LabelMatchers>>}) by (<<.GroupBy>>)"},
            [
                (
                    "warning: externalRules[0].metricsQuery: uses <<.GroupBy>>, which is empty for external metrics: "
                    "the result is one series without labels"
                )
            ],
            id="GroupBy",
        ),
        pytest.param(
            {"metricsQuery": "'sum(lag{<<.LabelMatchers>>,a=\"b\"})'"},
            [
                (
                    "warning: externalRules[0].metricsQuery: is invalid PromQL if there are no matchers; put "
                    "<<.LabelMatchers>> last in its braces"
                )
            ],
            id="LabelMatchers before a comma",
        ),
        pytest.param(
            {"metricsQuery": "a{<<.LabelMatchers>>} / b{<<.LabelMatchers>>}"},
            [
                "note: externalRules[0].metricsQuery: may return several series; an HPA adds them",
                (
                    "warning: externalRules[0].metricsQuery: divides: a denominator of 0 results in NaN, "
                    "which is an error by default"
                ),
            ],
            id="several series and a ratio",
        ),
        pytest.param(
            {"metricsQuery": "'lag{<<.LabelMatchers>>}[5m]'"},
            [("error: externalRules[0].metricsQuery: returns a range vector or a string, not one value per series")],
            id="range vector",
        ),
        pytest.param(
            {"metricsQuery": ""},
            ["error: externalRules[0].metricsQuery: is required: it is the query that is sent to Prometheus"],
            id="no metricsQuery",
        ),
        pytest.param(
            {"metricsQuery": "<<.Foo>>"},
            [
                (
                    "error: externalRules[0].metricsQuery: invalid template: can't evaluate field Foo; available "
                    "fields: GroupBy, GroupBySlice, LabelMatchers, LabelValuesByName, Series"
                )
            ],
            id="invalid template",
        ),
        pytest.param(
            {"name": "{matches: '(a)(b)'}"},
            ["error: externalRules[0].name: name.as is required, because name.matches has 2 groups"],
            id="two groups without name.as",
        ),
        pytest.param(
            {"seriesFilters": "[{}]"},
            ["error: externalRules[0].name: seriesFilters: each filter requires either is or isNot"],
            id="empty filter",
        ),
        pytest.param(
            {"metricQuery": "x"},
            ["error: externalRules[0].metricQuery: unknown key; did you mean 'metricsQuery'?"],
            id="unknown key",
        ),
    ],
)
def test_migration_notes_of_a_rule(parts: dict[str, str], expected: list[str]) -> None:
    assert rule_notes(rule(**parts)) == expected


def test_invalid_rule_does_not_affect_other_rules() -> None:
    good = rule(seriesQuery="good").removeprefix("externalRules:\n")
    assert names(parse_file(rule(metricsQuery="") + good)) == {"good": "good"}


def test_last_of_two_rules_with_the_same_name_wins_with_a_warning() -> None:
    other = rule(metricsQuery="max(lag{<<.LabelMatchers>>})").removeprefix("externalRules:\n")
    (converted,) = convert_rules(parse_file(rule() + other), {}, SETTINGS)
    assert converted.query == "max(lag{<<.LabelMatchers>>})"
    assert rule_notes(rule() + other) == [
        "warning: externalRules[1].name: 'lag' is also defined by externalRules[0], which is overridden by this rule"
    ]

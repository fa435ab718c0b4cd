"""Refused rules of prometheus-adapter files: a read of their metric is refused, and not of an unknown metric."""

from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from adapter import errors
from adapter.config.loading import decode_without_invalid_rules
from adapter.debug.rule_views import rules_view
from adapter.decoding.problem import Problem
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.rules.prometheus_adapter.conversion import parse_file
from adapter.rules.rule_registry import RuleRegistry
from autoscaler.values.selector import Selector
from tests.fakes.backend import loop_clock

pytestmark = pytest.mark.looptime
VALID: Final = {
    "seriesQuery": "orders_total",
    "resources": {"namespaced": False},
    "name": {"as": "orders"},
    "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>})",
}
EVERYTHING: Final = Selector()


def file_text(*rules: object) -> str:
    return yaml.safe_dump({"externalRules": list(rules)})


def registry_with(*rules: object) -> RuleRegistry:
    registry = RuleRegistry()
    registry.set_imported_rules("adapter.yaml", (), parse_file(file_text(*rules)).refusals({}))
    return registry


async def read_error(registry: RuleRegistry, metric: str) -> errors.AdapterError | None:
    reader = MetricReader(registry, Sources(Fetcher({}, loop_clock)), loop_clock)
    return (await reader.read("shop", metric, EVERYTHING)).error


@pytest.mark.parametrize(
    ("rule", "metric", "reason"),
    [
        pytest.param({**VALID, "metricsQuery": "<<.Nothing"}, "orders", "externalRules[0].metricsQuery: ", id="query"),
        pytest.param({**VALID, "metricsQuery": 5}, "Orders", "externalRules[0].metricsQuery: ", id="type"),
        pytest.param(
            {**VALID, "name": {"matches": "^(.*)_total$", "as": "${1}_rate"}, "metricsQuery": "<<.Nothing"},
            "orders_rate",
            "externalRules[0].metricsQuery: ",
            id="name derived from the series",
        ),
        pytest.param({"seriesQuery": "orders_total"}, "orders_total", "externalRules[0]", id="name of the series"),
    ],
)
async def test_refused_imported_rule_is_reported_as_refused(rule: object, metric: str, reason: str):
    error = await read_error(registry_with(rule), metric)
    assert isinstance(error, errors.RuleRefused)
    assert error.message.startswith(f"metric {metric!r}: refused: rule of adapter.yaml: {reason}")
    assert "no rule" not in error.message


async def test_refused_metric_is_listed_as_invalid_and_not_as_unknown():
    registry = registry_with({**VALID, "metricsQuery": "<<.Nothing"})
    reader = MetricReader(registry, Sources(Fetcher({}, loop_clock)), loop_clock)
    await reader.read("shop", "orders", EVERYTHING)
    view = rules_view(reader, {})
    assert view["unknownMetrics"] == []
    assert [each["rule"] for each in view["invalidRules"]] == ["orders of adapter.yaml"]


async def test_series_query_that_prometheus_rejects_is_the_reason():
    imported = parse_file(file_text({**VALID, "seriesQuery": '{__name__=~"a|b"}'}))
    assert imported.refusals({'{__name__=~"a|b"}': "bad query: parse error"}) == {
        "orders": "externalRules[0].seriesQuery: bad query: parse error"
    }
    assert imported.refusals({}) == {}


async def test_invalid_rule_of_the_configuration_is_reported_as_refused():
    registry = RuleRegistry((), {"Queue": (Problem("rules[0].query", "is required"),)})
    error = await read_error(registry, "queue")
    assert isinstance(error, errors.RuleRefused)
    assert error.message == "metric 'queue': refused: rule 'Queue' of the configuration: rules[0].query: is required"


def test_refusal_does_not_show_values_of_the_configuration_to_callers():
    problem = Problem("rules[0].query", "is not PromQL", value='payroll{account="17"', hint="close the brace")
    registry = RuleRegistry((), {"queue": (problem,)})
    expected = "rule 'queue' of the configuration: rules[0].query: is not PromQL; close the brace"
    assert registry.refusal("shop", "queue") == expected


@pytest.mark.parametrize(
    ("namespaces", "refused_in"),
    [(["bank"], {"bank"}), ([], {"bank", "shop"}), (None, {"bank", "shop"}), ("bank", {"bank", "shop"})],
    ids=["list", "empty list", "null", "text"],
)
def test_invalid_rule_is_refused_only_in_its_namespaces(namespaces: object, refused_in: set[str]):
    rule = {"name": "queue", "namespaces": namespaces, "typo": 1}
    loaded = decode_without_invalid_rules({"rules": [rule]})
    registry = RuleRegistry(loaded.config.rules, loaded.invalid_rules, loaded.invalid_in)
    assert {name for name in ("bank", "shop") if registry.refusal(name, "Queue")} == refused_in


def test_invalid_rules_of_one_name_are_refused_in_the_namespaces_of_all_of_them():
    rules = [{"name": "queue", "namespaces": [name], "typo": 1} for name in ("bank", "shop")]
    loaded = decode_without_invalid_rules({"rules": rules})
    registry = RuleRegistry(loaded.config.rules, loaded.invalid_rules, loaded.invalid_in)
    assert {name for name in ("bank", "shop", "mail") if registry.refusal(name, "queue")} == {"bank", "shop"}


async def test_refused_object_is_reported_as_refused_in_its_namespace_only():
    registry = RuleRegistry()
    registry.refuse_object("shop/queue", "spec.query: is invalid")
    error = await read_error(registry, "queue")
    assert str(error) == "metric 'queue': refused: ExternalMetric 'queue': spec.query: is invalid"
    assert registry.refusal("bank", "queue") == ""
    registry.refuse_object("shop/queue", "")
    assert isinstance(await read_error(registry, "queue"), errors.MetricNotFound)


ANYTHING: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "sum(", "$1", "<<.Series>>", "{a=1}"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["as", "matches", "is"]), inner),
    max_leaves=4,
)


@hypothesis(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(sorted(VALID)), ANYTHING), max_size=2))
def test_every_rule_with_a_name_is_served_or_refused(changes: list[tuple[str, Any]]):
    rule = {**VALID, **{key: value for key, value in changes if key != "name"}}
    imported = parse_file(file_text(rule))
    served = bool(imported.rules)
    assert served != ("orders" in imported.refusals({}))

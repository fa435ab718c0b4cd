"""Rendering of query templates such as ``sum(lag{<<.LabelMatchers>>})`` for one namespace and selector.

Native rules get label matchers with exactly the meaning of the selector. Rules that were imported from
prometheus-adapter get the matchers that prometheus-adapter would generate, so that an HPA reads the same value after
a migration.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from adapter.rules.go_template.nodes import Node, TemplateError
from adapter.rules.go_template.parser import parse
from adapter.rules.go_template.render import render
from adapter.rules.promql.matchers import NotExpressible, equality_matcher, selector_matchers
from adapter.rules.rule import Rule
from autoscaler.values.requirement import Requirement
from autoscaler.values.selector import Selector

_OPERATORS: Final = {"=": "=", "==": "=", "in": "=~", "!=": "!=", "notin": "!~"}

cached_parse = lru_cache(maxsize=1024)(parse)


def render_query(rule: Rule, namespace: str, selector: Selector) -> str:
    """Render the template of a rule; raise ``NotExpressible`` or ``TemplateError`` if that is impossible."""
    requirements = (*selector.requirements, *_namespace_requirement(rule, namespace))
    if rule.series:
        matchers = [_prometheus_adapter_matcher(requirement) for requirement in requirements]
    else:
        in_namespace = requirements[len(selector.requirements) :]
        matchers = [
            *selector_matchers(selector),
            *(equality_matcher(each.key, each.values[0]) for each in in_namespace),
        ]
    return render_template(cached_parse(str(rule.query)), rule.series, matchers, requirements)


def _namespace_requirement(rule: Rule, namespace: str) -> tuple[Requirement, ...]:
    """Return the requirement on the namespace label of a series; empty if the rule has none."""
    label, value = rule.namespacing.label, rule.namespacing.fixed or namespace
    return (Requirement(label, "=", (value,)),) if label and value else ()


def render_template(
    template: tuple[Node, ...], series: str, matchers: Sequence[str], requirements: tuple[Requirement, ...] = ()
) -> str:
    """Render a parsed template with the given label matchers; raise ``TemplateError`` if the result is empty."""
    text = render(
        template,
        {
            "Series": series,
            "LabelMatchers": ",".join(matchers),
            "LabelValuesByName": {each.key: "|".join(sorted(each.values)) for each in requirements},
            "GroupBy": "",
            "GroupBySlice": [],
        },
    )
    if not text.strip():
        raise TemplateError("the rendered query is empty")
    return text


def _prometheus_adapter_matcher(requirement: Requirement) -> str:
    """Return the matcher that prometheus-adapter generates: values of ``in`` are regular expressions, unescaped."""
    if requirement.operator == "exists":
        return f'{requirement.key}!=""'
    if requirement.operator == "!":
        return f'{requirement.key}=""'
    if requirement.operator not in _OPERATORS:
        raise NotExpressible(f"{str(requirement)!r} compares numbers, and PromQL only compares labels as text")
    # Kubernetes label values contain no character that needs quoting in PromQL.
    return f'{requirement.key}{_OPERATORS[requirement.operator]}"{"|".join(sorted(requirement.values))}"'

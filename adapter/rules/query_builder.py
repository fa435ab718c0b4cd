"""Construction of the query that is sent to a backend for a rule.

A template such as ``sum(lag{<<.LabelMatchers>>})`` is rendered for one namespace and selector. Native rules get label
matchers with exactly the meaning of the selector. Rules that were imported from prometheus-adapter get the matchers
that prometheus-adapter would generate, so that an HPA reads the same value after a migration.
"""

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from adapter import errors
from adapter.rules.delegation import DelegatedRule
from adapter.rules.go_template.lexer import TemplateError
from adapter.rules.go_template.template import Template
from adapter.rules.promql.matchers import NotExpressible, equality_matcher, selector_matchers
from adapter.rules.rule import STATIC, Rule, Series
from autoscaler.types.record import Record
from autoscaler.values.requirement import Requirement
from autoscaler.values.selector import Selector

_OPERATORS: Final = {"=": "=", "==": "=", "in": "=~", "!=": "!=", "notin": "!~"}

cached_template = lru_cache(maxsize=1024)(Template)
_encode_sorted = msgspec.json.Encoder(order="sorted", enc_hook=str).encode


class Query(Record, frozen=True):
    """A query for one backend."""

    backend: str
    """Name of the configured backend."""

    text: str
    """The query as it is sent and shown. A query that consists of parameters is JSON with sorted keys."""

    static_series: tuple[Series, ...] = ()
    """The series of a static metric."""

    tenant: str = ""
    """The namespace of the tenant whose rule the query is for; empty: a rule of the cluster's operator."""

    reader_namespace: str = ""
    """The namespace of the read, if the query depends on the read; empty: reads in all namespaces share the query."""

    @property
    def namespace(self) -> str:
        """The namespace on whose behalf the query is sent; empty: the operator.

        Slow or failing queries of a namespace have no effect on the queries of other namespaces.
        """
        return self.tenant or self.reader_namespace

    @property
    def key(self) -> Hashable:
        """Return the identity of the query: queries with equal keys share one result.

        Equal queries of two tenants have different keys, so that the interval and the deadline of one tenant and the
        changes of its objects have no effect on the other.
        """
        return self.backend, self.text, self.tenant, self.reader_namespace


def snapshot_query(rule: Rule) -> Query:
    if rule.is_static:
        return Query(STATIC, _encode_sorted(rule.static).decode(), rule.static, rule.tenant)
    return Query(rule.backend, rule.query or _encode_sorted(rule.parameters).decode(), tenant=rule.tenant)


def delegated_query(rule: DelegatedRule, namespace: str) -> Query:
    """Return the query of a read in this namespace from a delegate."""
    return Query(rule.backend, _encode_sorted(rule.parameters).decode(), reader_namespace=namespace)


def template_query(rule: Rule, namespace: str, selector: Selector) -> Query:
    """Render the template of a rule for one namespace and selector.

    Raise ``InvalidRequest`` if PromQL cannot express the selector, and ``BadQuery`` if the template cannot be rendered.
    """
    try:
        return Query(rule.backend, render_query(rule, namespace, selector), (), rule.tenant, namespace)
    except NotExpressible as error:
        raise errors.InvalidRequest(
            f"metric {rule.name!r}: the selector cannot be expressed in its query: {error}"
        ) from error
    except TemplateError as error:
        raise errors.BadQuery("the query template cannot be rendered", detail=str(error)) from error


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
    return render_template(cached_template(rule.query), rule.series, matchers, requirements)


def _namespace_requirement(rule: Rule, namespace: str) -> tuple[Requirement, ...]:
    """Return the requirement on the namespace label of a series; empty if the rule has none."""
    label, value = rule.namespacing.label, rule.namespacing.fixed or namespace
    return (Requirement(label, "=", (value,)),) if label and value else ()


def render_template(
    template: Template, series: str, matchers: Sequence[str], requirements: tuple[Requirement, ...] = ()
) -> str:
    """Render a parsed template with the given label matchers; raise ``TemplateError`` if the result is empty."""
    text = template.render(
        {
            "Series": series,
            "LabelMatchers": ",".join(matchers),
            "LabelValuesByName": {each.key: "|".join(sorted(each.values)) for each in requirements},
            "GroupBy": "",
            "GroupBySlice": [],
        }
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

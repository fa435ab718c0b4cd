"""A query with the selector inside: ``sum(lag{<<.LabelMatchers>>})`` for one namespace and one selector.

Our own rules get matchers that mean just what the selector means. A rule that came from prometheus-adapter gets what
prometheus-adapter makes of it, so that the same HPA reads the same number after moving.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from adapter.rules.go_template.nodes import Node, TemplateError
from adapter.rules.go_template.parser import parse
from adapter.rules.go_template.render import fill
from adapter.rules.promql.matchers import NotExpressible, equals, matchers
from adapter.rules.rule import Rule
from autoscaler.values.requirement import Requirement
from autoscaler.values.selector import Selector

_SIGNS: Final = {"=": "=", "==": "=", "in": "=~", "!=": "!=", "notin": "!~"}

parsed = lru_cache(maxsize=1024)(parse)


def rendered(rule: Rule, namespace: str, selector: Selector) -> str:
    """Fill a rule's template; raise ``NotExpressible`` or ``TemplateError`` if this selector cannot be inside it."""
    parts = selector.requirements
    where = namespace_requirement(rule, namespace)
    if rule.series:
        written = [_as_prometheus_adapter(part) for part in (*parts, *where)]
    else:
        written = [*matchers(selector), *(equals(part.key, part.values[0]) for part in where)]
    return filled(parsed(str(rule.query)), rule.series, written, (*parts, *where))


def namespace_requirement(rule: Rule, namespace: str) -> tuple[Requirement, ...]:
    """Say what the rule requires of a series' namespace, if anything."""
    belongs = rule.namespacing
    wanted = belongs.fixed or namespace
    return (Requirement(belongs.label, "=", (wanted,)),) if belongs.label and wanted else ()


def filled(
    template: tuple[Node, ...], series: str, written: Sequence[str], requirements: tuple[Requirement, ...] = ()
) -> str:
    """Fill a template with matchers that are written already."""
    text = fill(
        template,
        {
            "Series": series,
            "LabelMatchers": ",".join(written),
            "LabelValuesByName": {part.key: "|".join(sorted(part.values)) for part in requirements},
            "GroupBy": "",
            "GroupBySlice": [],
        },
    )
    if not text.strip():
        raise TemplateError("the query is empty")
    return text


def _as_prometheus_adapter(part: Requirement) -> str:
    """Write a matcher as prometheus-adapter does: values of ``in`` are regular expressions, keys go as they are."""
    if part.operator == "exists":
        return f'{part.key}!=""'
    if part.operator == "!":
        return f'{part.key}=""'
    if part.operator not in _SIGNS:
        raise NotExpressible(f"{str(part)!r} compares numbers, and PromQL compares labels as text only")
    # A label's value in Kubernetes has no character that would need quoting.
    return f'{part.key}{_SIGNS[part.operator]}"{"|".join(sorted(part.values))}"'

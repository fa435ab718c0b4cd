"""Notes for the migration of prometheus-adapter rules, shown by ``steadyscale check``.

A note reports a rule that cannot be served, a likely mistake, or a difference between the two adapters.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Final, Literal

from adapter.rules.go_template.lexer import TemplateError
from adapter.rules.go_template.template import Template
from adapter.rules.problems import name_problems
from adapter.rules.prometheus_adapter.discovery_rule import DiscoveryRule
from adapter.rules.prometheus_adapter.naming import MetricNaming, NamingError, single_series_name
from adapter.rules.promql import expression as promql
from adapter.rules.promql.errors import PromqlError
from adapter.rules.promql.parser import parse
from adapter.rules.query_builder import render_template
from autoscaler.types.record import Record

_GROUP_WITH_SUFFIX: Final = re.compile(r"\$\d+[A-Za-z_]")
_MATCHERS_BEFORE_COMMA: Final = re.compile(r"\{\s*<<-?\s*\.LabelMatchers\s*-?>>\s*,")
_SINGLE_SERIES_FUNCTIONS: Final = frozenset({"scalar", "absent", "vector"})
_SEVERAL_SERIES_AGGREGATIONS: Final = frozenset({"topk", "bottomk", "limitk", "limit_ratio", "count_values"})


class MigrationNote(Record, frozen=True):
    """A note about one rule or about the file."""

    path: str
    level: Literal["error", "warning", "note"]
    """``error``: the rule is not served. ``warning``: likely a mistake. ``note``: no action is required."""

    text: str

    def __str__(self) -> str:
        return f"{self.level}: {self.path}: {self.text}"


def migration_notes(rule: DiscoveryRule, path: str) -> Iterator[MigrationNote]:
    try:
        naming = MetricNaming(rule)
    except NamingError as error:
        yield MigrationNote(f"{path}.name", "error", str(error))
    else:
        yield from _name_notes(rule, naming, path)
    yield from _namespace_notes(rule, path)
    yield from _template_notes(rule.metrics_query, f"{path}.metricsQuery")


def _name_notes(rule: DiscoveryRule, naming: MetricNaming, path: str) -> Iterator[MigrationNote]:
    series = single_series_name(rule.series_query)
    if not rule.series_query:
        yield MigrationNote(f"{path}.seriesQuery", "error", "is required: it selects the series of the rule")
    elif not series:
        text = "does not name a single series; the series are listed from Prometheus periodically"
        yield MigrationNote(f"{path}.seriesQuery", "note", text)
        if "$" not in naming.template:
            yield MigrationNote(f"{path}.name.as", "warning", "gives all series the same name; only the last is served")
    elif (name := naming.name(series)) is None:
        text = f"exclude {series!r}, the only series of the rule; the rule defines no metric"
        yield MigrationNote(f"{path}.seriesFilters", "warning", text)
    else:
        yield from _fixed_name_notes(name, path)
    if _GROUP_WITH_SUFFIX.search(rule.name.as_):
        meant = _GROUP_WITH_SUFFIX.sub(lambda match: f"${{{match[0][1:-1]}}}{match[0][-1]}", rule.name.as_)
        text = f"{rule.name.as_!r} refers to a group with a name that includes the suffix; did you mean {meant!r}?"
        yield MigrationNote(f"{path}.name.as", "warning", text)


def _fixed_name_notes(name: str, path: str) -> Iterator[MigrationNote]:
    yield from (MigrationNote(f"{path}.name", "error", problem) for problem in name_problems(name))
    if name != name.lower():
        text = f"HPAs request {name!r} in lower case; the rule is found regardless of case"
        yield MigrationNote(f"{path}.name", "note", text)


def _namespace_notes(rule: DiscoveryRule, path: str) -> Iterator[MigrationNote]:
    if not rule.resources.namespaced:
        return
    try:
        label = rule.resources.namespace_label()
    except TemplateError as error:
        yield MigrationNote(f"{path}.resources.template", "error", str(error))
        return
    if not label:
        text = "the label of the namespace is not defined; set namespaced: false, a template, or an override"
        yield MigrationNote(f"{path}.resources", "error", text)


def _template_notes(template: str, path: str) -> Iterator[MigrationNote]:
    if not template:
        yield MigrationNote(path, "error", "is required: it is the query that is sent to Prometheus")
        return
    try:
        query = render_template(Template(template), "series", ['label="value"'])
    except TemplateError as error:
        yield MigrationNote(path, "error", f"invalid template: {error}")
        return
    warning = partial(MigrationNote, path, "warning")
    if ".LabelMatchers" not in template and ".LabelValuesByName" not in template:
        yield warning("has no <<.LabelMatchers>>: selectors are ignored, and every namespace reads the same value")
    if ".GroupBy" in template:
        yield warning("uses <<.GroupBy>>, which is empty for external metrics: the result is one series without labels")
    if _MATCHERS_BEFORE_COMMA.search(template):
        yield warning("is invalid PromQL if there are no matchers; put <<.LabelMatchers>> last in its braces")
    yield from _query_notes(query, path)


def _query_notes(query: str, path: str) -> Iterator[MigrationNote]:
    try:
        expression = parse(query)
    except PromqlError as error:
        yield MigrationNote(path, "warning", f"may be invalid PromQL: {error}")
        return
    if _is_not_a_vector(expression):
        yield MigrationNote(path, "error", "returns a range vector or a string, not one value per series")
    elif not _may_be_one_series(expression):
        yield MigrationNote(path, "note", "may return several series; an HPA adds them")
    if any(_divides_by_series(each) for each in promql.walk(expression)):
        yield MigrationNote(path, "warning", "divides: a denominator of 0 results in NaN, which is an error by default")


def _is_not_a_vector(expression: promql.Expression) -> bool:
    is_range = isinstance(expression, promql.VectorSelector) and expression.range is not None
    return is_range or isinstance(expression, promql.Subquery | promql.StringLiteral)


def _may_be_one_series(expression: promql.Expression) -> bool:
    while isinstance(expression, promql.BinaryExpression):
        expression = expression.left
    match expression:
        case promql.AggregateExpression(operator):
            return operator not in _SEVERAL_SERIES_AGGREGATIONS
        case promql.FunctionCall(function):
            return function in _SINGLE_SERIES_FUNCTIONS
        case _:
            return False


def _divides_by_series(expression: promql.Expression) -> bool:
    match expression:
        case promql.BinaryExpression("/", right=divisor):
            return not isinstance(divisor, promql.NumberLiteral)
        case _:
            return False

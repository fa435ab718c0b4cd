"""What someone who moves over should know about each rule: what will not work, what will surprise, what differs."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Literal

from adapter.rules.go_template.nodes import TemplateError
from adapter.rules.go_template.parser import parse
from adapter.rules.problems import name_problems
from adapter.rules.prometheus_adapter.discovery_rule import DiscoveryRule
from adapter.rules.prometheus_adapter.naming import Naming, PatternError, pinned
from adapter.rules.promql.lexer import PromqlError, Token, tokens
from adapter.rules.query_template import filled
from autoscaler.types.record import Record

_GLUED: Final = re.compile(r"\$\d+[A-Za-z_]")
_LEADING_COMMA: Final = re.compile(r"\{\s*<<-?\s*\.LabelMatchers\s*-?>>\s*,")
_AGGREGATIONS: Final = re.compile(r"sum|min|max|avg|count|group|stddev|stdvar|quantile|scalar|absent|vector")
_FUNCTIONS_OF_ONE: Final = "a metric that several series answer is their sum to an HPA"


class Finding(Record, frozen=True):
    """One thing to know."""

    path: str
    level: Literal["error", "warning", "note"]
    """``error``: the rule is not served. ``warning``: it may surprise. ``note``: nothing needs to be done."""

    text: str

    def __str__(self) -> str:
        return f"{self.level}: {self.path}: {self.text}"


def findings(rule: DiscoveryRule, at: str) -> Iterator[Finding]:
    """Say everything that there is to know about a rule."""
    try:
        naming = Naming(rule)
    except PatternError as error:
        yield Finding(f"{at}.name", "error", str(error))
    else:
        yield from _name_findings(rule, naming, at)
    yield from _namespace_findings(rule, at)
    yield from _template_findings(rule.metrics_query, f"{at}.metricsQuery")


def _name_findings(rule: DiscoveryRule, naming: Naming, at: str) -> Iterator[Finding]:
    series = pinned(rule.series_query)
    if not rule.series_query:
        yield Finding(f"{at}.seriesQuery", "error", "is missing: nothing says which series the rule is about")
    elif not series:
        yield Finding(f"{at}.seriesQuery", "note", "names no single series; Prometheus is asked for them periodically")
        if "$" not in naming.template:
            yield Finding(f"{at}.name.as", "warning", "gives all its series one name; the last one wins")
    elif not naming.accepts(series):
        yield Finding(f"{at}.seriesFilters", "warning", f"do not let {series!r} through; the rule defines no metric")
    else:
        yield from _fixed_name_findings(naming.name(series), at)
    if _GLUED.search(rule.name.as_):
        wanted = _GLUED.sub(lambda match: f"${{{match[0][1:-1]}}}{match[0][-1]}", rule.name.as_)
        yield Finding(
            f"{at}.name.as", "warning", f"{rule.name.as_!r} refers to a group of that name; meant: {wanted!r}?"
        )


def _fixed_name_findings(name: str, at: str) -> Iterator[Finding]:
    yield from (Finding(f"{at}.name", "error", problem) for problem in name_problems(name))
    if name != name.lower():
        yield Finding(f"{at}.name", "note", f"an HPA asks for {name!r} in lower case; here it is found all the same")


def _namespace_findings(rule: DiscoveryRule, at: str) -> Iterator[Finding]:
    if not rule.resources.namespaced:
        return
    try:
        label = rule.resources.namespace_label()
    except TemplateError as error:
        yield Finding(f"{at}.resources.template", "error", str(error))
        return
    if not label:
        yield Finding(
            f"{at}.resources",
            "error",
            "nothing says which label holds the namespace; set namespaced: false, a template, or an override",
        )


def _template_findings(template: str, at: str) -> Iterator[Finding]:
    if not template:
        yield Finding(at, "error", "is missing: there is nothing to ask")
        return
    try:
        query = filled(parse(template), "series", ['label="value"'])
    except TemplateError as error:
        yield Finding(at, "error", f"the template is wrong: {error}")
        return
    if ".LabelMatchers" not in template and ".LabelValuesByName" not in template:
        yield Finding(
            at, "warning", "has no <<.LabelMatchers>>: selectors are ignored, and every namespace reads the same"
        )
    if ".GroupBy" in template:
        yield Finding(
            at, "warning", "uses <<.GroupBy>>, which is empty for external metrics: one series without labels"
        )
    if _LEADING_COMMA.search(template):
        yield Finding(
            at, "warning", "is no query when there are no matchers; put <<.LabelMatchers>> last in its braces"
        )
    yield from _query_findings(query, at)


def _query_findings(query: str, at: str) -> Iterator[Finding]:
    try:
        found = tokens(query)
    except PromqlError as error:
        yield Finding(at, "warning", f"Prometheus may not understand it: {error}")
        return
    if found[-1].text == "]" or (len(found) == 1 and found[0].kind == "string"):
        yield Finding(at, "error", "answers with a range or a text, not with one number for each series")
    elif not _AGGREGATIONS.fullmatch(found[0].text.lower()):
        yield Finding(at, "note", f"may answer with several series; {_FUNCTIONS_OF_ONE}")
    if _divides(found):
        yield Finding(at, "warning", "divides: with nothing below the line it is not a number, which is an error here")


def _divides(found: list[Token]) -> bool:
    return any(each.text == "/" and after.kind != "number" for each, after in pairwise(found))

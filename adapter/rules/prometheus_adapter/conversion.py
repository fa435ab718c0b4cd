"""Conversion of a prometheus-adapter configuration file into rules, with migration notes.

The file is the configuration of prometheus-adapter itself, a ConfigMap with it, or the values of its Helm chart. An
invalid rule is left out and reported; it does not affect the other rules of the file.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import yaml

from adapter.decoding import documents
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.rules.problems import name_problems
from adapter.rules.prometheus_adapter.discovery_rule import DiscoveryRule, MetricName
from adapter.rules.prometheus_adapter.migration_notes import MigrationNote, migration_notes
from adapter.rules.prometheus_adapter.naming import MetricNaming, NamingError, single_series_name
from adapter.rules.prometheus_adapter.settings import PrometheusAdapterFile
from adapter.rules.rule import Namespacing, Rule
from autoscaler.types.record import Record

Document: TypeAlias = Mapping[str, Any]

_UNUSED_RULES: Final = {"rules": "custom.metrics.k8s.io", "resourceRules": "metrics.k8s.io"}
_KEYS: Final = ("externalRules", "rules", "resourceRules")
_CHART_KEYS: Final = {"external": "externalRules", "custom": "rules", "resource": "resourceRules"}
_PARENT_KEYS: Final = ("prometheus-adapter", "prometheusAdapter", "values", "spec")
_MAX_DEPTH: Final = 4


class ImportedRule(Record, frozen=True):
    """A valid rule of the file."""

    path: str
    """Path of the rule in the file."""

    rule: DiscoveryRule
    series: str = ""
    """The only series of the rule; empty: the series are discovered from Prometheus."""


class RefusedRule(Record, frozen=True):
    """An invalid rule of the file, with the metric that it would define as far as that is known."""

    metric: str
    reason: str


class ImportedFile(Record, frozen=True):
    """The valid rules of a file and the notes about all of them."""

    rules: tuple[ImportedRule, ...] = ()
    notes: tuple[MigrationNote, ...] = ()
    refused: tuple[RefusedRule, ...] = ()

    def refusals(self, discovery_errors: Mapping[str, str]) -> Mapping[str, str]:
        """Return why rules are refused, by metric in lower case; ``discovery_errors`` are those of series queries."""
        undiscovered = (
            RefusedRule(_metric_of(each.rule), f"{each.path}.seriesQuery: {discovery_errors[each.rule.series_query]}")
            for each in self.rules
            if not each.series and each.rule.series_query in discovery_errors
        )
        return {each.metric.lower(): each.reason for each in (*self.refused, *undiscovered) if each.metric}

    @property
    def discovery_queries(self) -> frozenset[str]:
        """Return the series queries of the rules whose series must be discovered from Prometheus."""
        return frozenset(each.rule.series_query for each in self.rules if not each.series)


def parse_file(text: str, *, strict_discovery: bool = False) -> ImportedFile:
    """Parse a file and leave out invalid rules; raise ``ConfigInvalid`` if it is not a prometheus-adapter file."""
    document = _find_rules(text)
    imported: list[ImportedRule] = []
    notes: list[MigrationNote] = []
    refused: list[RefusedRule] = []
    for number, raw in enumerate(document.get("externalRules") or ()):
        path = f"externalRules[{number}]"
        try:
            rule = documents.decode(_without_nulls(raw), DiscoveryRule, path)
        except ConfigInvalid as error:
            notes += (MigrationNote(each.path, "error", str(replace(each, path=""))) for each in error.problems)
            refused.append(RefusedRule(_metric_of(_decoded_part(raw)), "; ".join(map(str, error.problems))))
            continue
        rule_notes = list(migration_notes(rule, path))
        notes += rule_notes
        if problems := [f"{note.path}: {note.text}" for note in rule_notes if note.level == "error"]:
            refused.append(RefusedRule(_metric_of(rule), "; ".join(problems)))
        else:
            imported.append(ImportedRule(path, rule, "" if strict_discovery else single_series_name(rule.series_query)))
    all_notes = (*notes, *_name_conflicts(imported), *_file_notes(document))
    return ImportedFile(tuple(imported), all_notes, tuple(refused))


def _metric_of(rule: DiscoveryRule) -> str:
    """Return the metric that an invalid rule would define; empty if it is unknown."""
    if rule.name.as_ and "$" not in rule.name.as_:
        return rule.name.as_
    series = single_series_name(rule.series_query)
    try:
        return next(iter(MetricNaming(rule).names([series] if series else ())), "")
    except NamingError:
        return ""


def _decoded_part(raw: object) -> DiscoveryRule:
    """Return the fields of an undecodable rule that its metric depends on, as far as they are valid."""
    rule = raw if isinstance(raw, Mapping) else {}
    name = rule.get("name")
    template = name.get("as") if isinstance(name, Mapping) else None
    series_query = rule.get("seriesQuery")
    return DiscoveryRule(
        series_query if isinstance(series_query, str) else "",
        name=MetricName(as_=template if isinstance(template, str) else ""),
    )


def convert_rules(
    imported: ImportedFile, discovered: Mapping[str, Iterable[str]], settings: PrometheusAdapterFile
) -> tuple[Rule, ...]:
    """Return the rules of a file; of two metrics with the same name, the last one wins, as in prometheus-adapter.

    ``discovered`` are the names of the existing series by series query.
    """
    converted: dict[str, Rule] = {}
    for entry in imported.rules:
        series = (entry.series,) if entry.series else sorted(discovered.get(entry.rule.series_query, ()))
        for name, series_name in MetricNaming(entry.rule).names(series).items():
            if not name_problems(name):
                converted[name.lower()] = _convert(entry.rule, name, series_name, settings)
    return tuple(converted.values())


def _convert(rule: DiscoveryRule, name: str, series: str, settings: PrometheusAdapterFile) -> Rule:
    return Rule(
        name=name,
        backend=settings.backend,
        query=rule.metrics_query,
        series=series,
        namespace=Namespacing(label=rule.resources.namespace_label() if rule.resources.namespaced else ""),
        interval=settings.interval,
        deadline=settings.deadline,
        max_sample_age=settings.max_sample_age,
    )


def _name_conflicts(imported: list[ImportedRule]) -> Iterator[MigrationNote]:
    paths: dict[str, str] = {}
    for entry in imported:
        for name in MetricNaming(entry.rule).names([entry.series] if entry.series else ()):
            if earlier := paths.get(name.lower()):
                text = f"{name!r} is also defined by {earlier}, which is overridden by this rule"
                yield MigrationNote(f"{entry.path}.name", "warning", text)
            paths[name.lower()] = entry.path


def _file_notes(document: Document) -> Iterator[MigrationNote]:
    for key, group in _UNUSED_RULES.items():
        if count := len(document.get(key) or ()):
            yield MigrationNote(key, "note", f"ignored: {count} for {group}, an API that Steadyscale does not serve")
    if document.get("externalRules"):
        text = "values of in and notin are regular expressions, as in prometheus-adapter: 'a.b' also matches 'axb'"
        yield MigrationNote("externalRules", "note", text)
    else:
        yield MigrationNote(
            "externalRules", "warning", "the file has no external rules, so no metric is served from it"
        )


def _without_nulls(raw: Any) -> Any:  # noqa: ANN401 - a document may hold anything
    """Remove null values, which prometheus-adapter treats as absent."""
    if isinstance(raw, Mapping):
        return {key: _without_nulls(value) for key, value in raw.items() if value is not None}
    return [_without_nulls(value) for value in raw] if isinstance(raw, list) else raw


def _find_rules(text: str) -> Document:
    """Return ``externalRules``, ``rules`` and ``resourceRules``; raise ``ConfigInvalid`` if no document has them."""
    for document in _parse_yaml(text):
        for candidate in _candidates(document, _MAX_DEPTH):
            return candidate
    message = "not a prometheus-adapter configuration: expected its config file, a ConfigMap with it, or Helm values"
    raise ConfigInvalid([Problem("", message)])


def _parse_yaml(text: str) -> list[object]:
    """Parse the YAML documents of a file; raise ``ConfigInvalid`` if it is not YAML."""
    try:
        return list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise ConfigInvalid([Problem("", f"invalid YAML: {' '.join(str(error).split())}")]) from error


def _candidates(document: object, depth: int) -> Iterator[Document]:
    if not isinstance(document, Mapping) or not depth:
        return
    if document.get("kind") == "ConfigMap":
        for text in (document.get("data") or {}).values():
            for inner in _parse_yaml(text) if isinstance(text, str) else ():
                yield from _candidates(inner, depth - 1)
    elif document.get("kind") == "List":
        for item in document.get("items") or ():
            yield from _candidates(item, depth - 1)
    elif isinstance(document.get("rules"), Mapping):
        chart = document["rules"]
        yield {key: chart[name] for name, key in _CHART_KEYS.items() if chart.get(name)}
    elif any(isinstance(document.get(key), list) for key in _KEYS[:2]) or "resourceRules" in document:
        yield {key: document[key] for key in _KEYS if document.get(key)}
    else:
        for key in _PARENT_KEYS:
            yield from _candidates(document.get(key), depth - 1)

"""A file of prometheus-adapter → rules of ours, and a checklist. A rule that is wrong is left out, and no other."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from adapter.decoding import documents
from adapter.errors import ConfigInvalid
from adapter.rules.problems import name_problems
from adapter.rules.prometheus_adapter.discovery_rule import DiscoveryRule
from adapter.rules.prometheus_adapter.document import parse, rules_in
from adapter.rules.prometheus_adapter.migration_notes import Finding, findings
from adapter.rules.prometheus_adapter.naming import Naming, pinned
from adapter.rules.rule import Namespacing, Rule
from autoscaler.types.record import Record

_UNUSED = {"rules": "custom.metrics.k8s.io", "resourceRules": "metrics.k8s.io"}


class Entry(Record, frozen=True):
    """A rule that can be served, and where it stands in the file."""

    path: str
    rule: DiscoveryRule
    series: str = ""
    """The one series it is about; empty: Prometheus must be asked which there are."""


class Import(Record, frozen=True):
    """A whole file."""

    entries: tuple[Entry, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def questions(self) -> frozenset[str]:
        """The series queries that Prometheus must be asked."""
        return frozenset(each.rule.series_query for each in self.entries if not each.series)


class Defaults(Record, frozen=True):
    """What prometheus-adapter's file does not say and our rules need."""

    backend: str
    interval: timedelta = Rule("").interval
    deadline: timedelta = Rule("").deadline
    max_sample_age: timedelta = Rule("").max_sample_age


def read(text: str, *, strict_discovery: bool = False) -> Import:
    """Read a file; raise ``ConfigInvalid`` if it is none of prometheus-adapter's. Rules with problems are left out."""
    document = rules_in(parse(text))
    entries: list[Entry] = []
    found: list[Finding] = []
    for number, raw in enumerate(document.get("externalRules") or ()):
        path = f"externalRules[{number}]"
        try:
            rule = documents.decode(_without_nulls(raw), DiscoveryRule)
        except ConfigInvalid as error:
            found += (Finding(f"{path}.{problem}", "error", "not read") for problem in error.problems)
            continue
        about = list(findings(rule, path))
        found += about
        if all(each.level != "error" for each in about):
            entries.append(Entry(path, rule, "" if strict_discovery else pinned(rule.series_query)))
    return Import(tuple(entries), (*found, *_collisions(entries), *_of_the_file(document)))


def rules(imported: Import, known: Mapping[str, Iterable[str]], defaults: Defaults) -> tuple[Rule, ...]:
    """Make rules of a file, ``known`` being the names of series by series query. Of two of one name the last wins."""
    made: dict[str, Rule] = {}
    for entry in imported.entries:
        series = (entry.series,) if entry.series else sorted(known.get(entry.rule.series_query, ()))
        for name, each in Naming(entry.rule).names(series).items():
            if not name_problems(name):
                made[name.lower()] = _rule(entry.rule, name, each, defaults)
    return tuple(made.values())


def _rule(rule: DiscoveryRule, name: str, series: str, defaults: Defaults) -> Rule:
    return Rule(
        name=name,
        backend=defaults.backend,
        query=rule.metrics_query,
        series=series,
        namespace=Namespacing(label=rule.resources.namespace_label() if rule.resources.namespaced else ""),
        interval=defaults.interval,
        deadline=defaults.deadline,
        max_sample_age=defaults.max_sample_age,
    )


def _collisions(entries: list[Entry]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for entry in entries:
        for name in Naming(entry.rule).names([entry.series] if entry.series else ()):
            if earlier := seen.get(name.lower()):
                text = f"{name!r} is also the name of {earlier}; this one wins"
                yield Finding(f"{entry.path}.name", "warning", text)
            seen[name.lower()] = entry.path


def _of_the_file(document: Mapping[str, Any]) -> Iterator[Finding]:
    for key, group in _UNUSED.items():
        if count := len(document.get(key) or ()):
            yield Finding(key, "note", f"not used: {count} of {group}, which is not ours to serve")
    if document.get("externalRules"):
        text = "the values of in and notin are regular expressions, as they were: 'a.b' also matches 'axb'"
        yield Finding("externalRules", "note", text)
    else:
        yield Finding("externalRules", "warning", "there are none, so there is nothing to serve")


def _without_nulls(raw: Any) -> Any:  # noqa: ANN401 - a document may hold anything
    """Leave out what is null: to prometheus-adapter that is the same as absent."""
    if isinstance(raw, Mapping):
        return {key: _without_nulls(value) for key, value in raw.items() if value is not None}
    return [_without_nulls(value) for value in raw] if isinstance(raw, list) else raw

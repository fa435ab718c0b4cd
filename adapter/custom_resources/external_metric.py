"""Conversion of an ``ExternalMetric`` object into a rule that is restricted to the object's namespace."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from adapter.backends.configuration import BackendEntry, query_problems
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.settings import PROMQL
from adapter.decoding import documents
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.rules.problems import rule_problems
from adapter.rules.promql.errors import PromqlError
from adapter.rules.rule import Aggregation, Namespacing, OnEmpty, OnTooOld, OnUnusable, Series, TenantRule
from adapter.rules.tenancy import Dialect, restrict_to_namespace
from autoscaler.types.record import Record

GROUP_VERSION: Final = "steadyscale.dev/v1beta1"
KIND: Final = "ExternalMetric"
PLURAL: Final = "externalmetrics"

MAX_SPEC_BYTES: Final = 65536
"""Size of a spec as JSON: a query of 16 KiB, and parameters of 32 KiB."""

_Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=253)]
_LabelKey: TypeAlias = Annotated[str, msgspec.Meta(max_length=317)]  # a DNS name, a slash and a name


class ExternalMetricSpec(Record, frozen=True):
    """The spec of an ``ExternalMetric``: a rule without the settings that are reserved for the cluster's operator.

    The CustomResourceDefinition has the same limits.
    """

    metric: _Name = ""
    """The metric's name; empty: the name of the object."""

    aliases: Annotated[tuple[_Name, ...], msgspec.Meta(max_length=16)] = ()
    backend: _Name = ""
    query: Annotated[str, msgspec.Meta(max_length=16384)] = ""
    parameters: Mapping[str, object] = {}
    static: Annotated[tuple[Series, ...], msgspec.Meta(max_length=256)] = ()
    labels: Annotated[tuple[_LabelKey, ...], msgspec.Meta(max_length=64)] = ()
    aggregation: Aggregation = Aggregation.SUM
    interval: timedelta | None = None
    max_sample_age: timedelta = timedelta(minutes=5)
    deadline: timedelta = timedelta(seconds=5)
    on_empty: OnEmpty = OnEmpty.ERROR
    on_nan: OnUnusable = msgspec.field(default=OnUnusable.ERROR, name="onNaN")
    on_out_of_range: OnUnusable = OnUnusable.ERROR
    on_too_old: OnTooOld = OnTooOld.ERROR


def rule_from_object(document: Mapping[str, Any], backends: Mapping[str, BackendEntry] | None) -> TenantRule:
    """Convert an object to a rule; raise ``ConfigInvalid`` with all problems.

    ``backends`` are the configured backends; None if they are not known, as when a manifest is checked by itself.
    """
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping):
        raise ConfigInvalid([Problem("metadata", "is required")])
    name, namespace = str(metadata.get("name") or ""), str(metadata.get("namespace") or "default")
    return rule_from_spec(document.get("spec") or {}, name, namespace, backends)


def rule_from_spec(
    document: object, name: str, namespace: str, backends: Mapping[str, BackendEntry] | None
) -> TenantRule:
    """Convert the spec of the object with this name and namespace; see ``rule_from_object``."""
    spec = documents.decode(document, ExternalMetricSpec, "spec")
    entry = None
    if backends is not None and spec.backend:
        # First of all: the query and the parameters of an object are not parsed for a backend that it may not use.
        entry = _available_entry(spec.backend, namespace, backends)
    fields = {field: getattr(spec, field) for field in spec.__struct_fields__ if field != "metric"}
    rule = TenantRule(name=spec.metric or name, namespaces=(namespace,), namespace=Namespacing(), **fields)
    found = [*rule_problems(rule, "spec"), *query_problems(rule, entry, "spec")]
    try:
        restricted = rule if rule.is_static else _restricted(rule, namespace, entry)
    except ConfigInvalid as error:
        known = {problem.path for problem in found}
        found += [problem for problem in error.problems if problem.path not in known]
    if found:
        raise ConfigInvalid(
            replace(problem, path="spec.metric") if problem.path == "spec.name" else problem for problem in found
        )
    return restricted


def _available_entry(name: str, namespace: str, backends: Mapping[str, BackendEntry]) -> BackendEntry:
    """Return a backend that the namespace may use; raise ``ConfigInvalid`` for any other, whether it exists or not."""
    available = {key: entry for key, entry in backends.items() if _is_available(entry, namespace)}
    if name in available:
        return available[name]
    message = f"backend {name!r} is not available to ExternalMetrics in namespace {namespace!r}"
    usable = f"available backends: {', '.join(sorted(available))}" if available else "no backend is available to them"
    raise ConfigInvalid([Problem("spec.backend", message, hint=f"{usable}; see externalMetrics of a backend")])


def _is_available(entry: BackendEntry, namespace: str) -> bool:
    access = entry.external_metrics
    return access is not None and (not access.namespaces or namespace in access.namespaces)


def _restricted(rule: TenantRule, namespace: str, entry: BackendEntry | None) -> TenantRule:
    """Return the rule restricted to series of the namespace."""
    label, is_promql = "namespace", bool(rule.query)
    dialect: Dialect = "PromQL"
    if entry is not None and entry.external_metrics is not None:
        if entry.settings.labels_controlled_by_rules:
            return rule  # labels are not trustworthy here; the operator allowed these namespaces to read all series
        label = entry.external_metrics.namespace_label
        is_promql = entry.settings.query_language == PROMQL and bool(rule.query)
        dialect = entry.settings.dialect if isinstance(entry.settings, Prometheus) else dialect
    if not is_promql:  # the query cannot be restricted; series of other namespaces are dropped from its result
        return msgspec.structs.replace(rule, namespace=Namespacing(label=label))
    try:
        query = restrict_to_namespace(rule.query, label, namespace, dialect)
    except PromqlError as error:
        raise ConfigInvalid([Problem("spec.query", str(error))]) from None
    return msgspec.structs.replace(rule, query=query, restricted_by=label)

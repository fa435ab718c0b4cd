"""Conversion of an ``ExternalMetric`` object into a rule that is restricted to the object's namespace."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import msgspec

from adapter.backends.configuration import BackendEntry, query_problems
from adapter.backends.settings import PROMQL
from adapter.decoding import documents
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.rules.problems import rule_problems
from adapter.rules.promql.lexer import PromqlError
from adapter.rules.rule import Aggregation, Namespacing, OnEmpty, OnTooOld, OnUnusable, Rule, Series, TenantRule
from adapter.rules.tenancy import restrict_to_namespace
from autoscaler.types.record import Record

GROUP_VERSION: Final = "steadyscale.dev/v1beta1"
KIND: Final = "ExternalMetric"
PLURAL: Final = "externalmetrics"


class ExternalMetricSpec(Record, frozen=True):
    """The spec of an ``ExternalMetric``: a rule without the settings that are reserved for the cluster's operator."""

    metric: str = ""
    """The metric's name; empty: the name of the object."""

    aliases: tuple[str, ...] = ()
    backend: str = ""
    query: str = ""
    parameters: Mapping[str, object] = {}
    static: tuple[Series, ...] = ()
    labels: tuple[str, ...] = ()
    aggregation: Aggregation = Aggregation.SUM
    interval: timedelta = timedelta(seconds=15)
    max_sample_age: timedelta = timedelta(minutes=5)
    deadline: timedelta = timedelta(seconds=5)
    on_empty: OnEmpty = OnEmpty.ERROR
    on_nan: OnUnusable = msgspec.field(default=OnUnusable.ERROR, name="onNaN")
    on_out_of_range: OnUnusable = OnUnusable.ERROR
    on_too_old: OnTooOld = OnTooOld.ERROR


def rule_from_object(document: Mapping[str, Any], backends: Mapping[str, BackendEntry] | None) -> Rule:
    """Convert an object to a rule; raise ``ConfigInvalid`` with all problems.

    ``backends`` are the configured backends; None if they are not known, as when a manifest is checked by itself.
    """
    metadata = document.get("metadata") or {}
    spec = documents.decode(document.get("spec") or {}, ExternalMetricSpec, "spec")
    namespace = str(metadata.get("namespace") or "default")
    fields = {field: getattr(spec, field) for field in spec.__struct_fields__ if field != "metric"}
    name = spec.metric or str(metadata.get("name") or "")
    rule = TenantRule(name=name, namespaces=(namespace,), namespace=Namespacing(), **fields)
    entry = (backends or {}).get(rule.backend)
    if problems := [*rule_problems(rule, "spec", backends), *query_problems(rule, entry, "spec")]:
        raise ConfigInvalid(
            replace(problem, path="spec.metric") if problem.path == "spec.name" else problem for problem in problems
        )
    return rule if rule.is_static else _restricted(rule, namespace, entry)


def _restricted(rule: Rule, namespace: str, entry: BackendEntry | None) -> Rule:
    """Return the rule restricted to series of the namespace; raise ``ConfigInvalid`` if it may not use the backend."""
    label, is_promql = "namespace", bool(rule.query)
    if entry is not None:
        access = entry.external_metrics
        if access is None or (access.namespaces and namespace not in access.namespaces):
            message = f"backend {rule.backend!r} is not available to ExternalMetrics in namespace {namespace!r}"
            hint = "externalMetrics of the backend lists the namespaces"
            raise ConfigInvalid([Problem("spec.backend", message, hint=hint)])
        if entry.settings.labels_controlled_by_rules:
            return rule  # labels are not trustworthy here; the operator allowed these namespaces to read all series
        label, is_promql = access.namespace_label, entry.settings.query_language == PROMQL and bool(rule.query)
    if not is_promql:  # the query cannot be restricted; series of other namespaces are dropped from its result
        return msgspec.structs.replace(rule, namespace=Namespacing(label=label))
    try:
        query = restrict_to_namespace(rule.query, label, namespace)
    except PromqlError as error:
        raise ConfigInvalid([Problem("spec.query", str(error))]) from None
    return msgspec.structs.replace(rule, query=query)

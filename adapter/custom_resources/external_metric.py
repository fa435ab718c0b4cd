"""An ``ExternalMetric`` object as the rule it stands for: confined to its namespace, whatever it says."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from adapter.backends.configuration import BackendEntry, question_problems
from adapter.backends.settings import PROMQL
from adapter.decoding import documents
from adapter.errors import ConfigInvalid
from adapter.rules.problems import rule_problems
from adapter.rules.promql.lexer import PromqlError
from adapter.rules.rule import Aggregation, Namespacing, OnEmpty, OnOld, OnUnusable, Rule, Series
from adapter.rules.tenancy import confined
from autoscaler.types.record import Record

GROUP_VERSION: Final = "steadyscale.dev/v1beta1"
KIND: Final = "ExternalMetric"
PLURAL: Final = "externalmetrics"


class Spec(Record, frozen=True):
    """What the user writes: a rule, without what only a cluster's operator may decide."""

    metric: str = ""
    """The name an HPA asks for; left out: the object's own name."""

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
    on_too_old: OnOld = OnOld.ERROR


def rule_of(document: Mapping[str, Any], backends: Mapping[str, BackendEntry] | None) -> Rule:
    """Make the rule of an object; raise ``ConfigInvalid`` with its problems, each with its path.

    ``backends`` are those that there are; None where that is not known, as for who checks a manifest by itself.
    """
    metadata = document.get("metadata") or {}
    try:
        spec = documents.decode(document.get("spec") or {}, Spec)
    except ConfigInvalid as error:
        raise ConfigInvalid(f"spec.{problem}" for problem in error.problems) from None
    namespace = str(metadata.get("namespace") or "default")
    plain = _plain(spec, namespace, str(metadata.get("name") or ""))
    entry = (backends or {}).get(plain.backend)
    wrong = [*rule_problems(plain, "spec", backends), *question_problems(plain, entry, "spec")]
    if wrong:
        raise ConfigInvalid(map(_in_their_words, wrong))
    return plain if plain.is_static else _confined(plain, namespace, entry)


def _plain(spec: Spec, namespace: str, name: str) -> Rule:
    fields = {field: getattr(spec, field) for field in spec.__struct_fields__ if field != "metric"}
    return Rule(name=spec.metric or name, namespaces=(namespace,), namespace=Namespacing(), **fields)


def _confined(rule: Rule, namespace: str, entry: BackendEntry | None) -> Rule:
    if entry is None:
        label, can_be_in_the_query = "namespace", bool(rule.query)
    else:
        allowed = entry.external_metrics
        if allowed is None or (allowed.namespaces and namespace not in allowed.namespaces):
            raise ConfigInvalid([f"spec.backend: {rule.backend!r} is not open to ExternalMetrics of this namespace"])
        # Of a query that is not PromQL the answer is confined: series of other namespaces are left out by their label.
        label, can_be_in_the_query = allowed.namespace_label, entry.settings.language == PROMQL and bool(rule.query)
        if entry.settings.rules_write_labels:
            return rule  # the operator gave these namespaces all of it
    if not can_be_in_the_query:
        return msgspec.structs.replace(rule, namespace=Namespacing(label=label))
    try:
        query = confined(rule.query, label, namespace)
    except PromqlError as error:
        raise ConfigInvalid([f"spec.query: {error}"]) from None
    return msgspec.structs.replace(rule, query=query)


def _in_their_words(problem: str) -> str:
    """Say the path as it is in the object, where the name has another key."""
    return problem.replace("spec.name:", "spec.metric:", 1)

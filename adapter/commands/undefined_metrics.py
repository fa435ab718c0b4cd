"""Metrics that autoscalers name and that no rule defines, as far as the files at hand can tell."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from adapter.commands.documents import Document, Finding
from adapter.config import loading
from adapter.custom_resources.external_metric import rule_from_object
from adapter.decoding.problem import ConfigInvalid
from adapter.rules.rule import Rule
from adapter.rules.rule_set import RuleSet

_AUTOSCALERS: Final = frozenset({"PodAutoscaler", "HorizontalPodAutoscaler"})


def undefined(read: Sequence[Document]) -> Iterator[Finding]:
    """Yield a note for each; without a configuration among the files nobody can tell, so nothing is said."""
    filed = [rules for document in read if document.kind == "" if (rules := _filed(document.content)) is not None]
    if not filed:
        return
    known = RuleSet([*(rule for rules in filed for rule in rules), *_objects(read)])
    for document in read:
        if document.kind in _AUTOSCALERS and isinstance(document.content.get("spec"), dict):
            yield from _missing(document, known)


def _missing(document: Document, known: RuleSet) -> Iterator[Finding]:
    namespace = (document.content.get("metadata") or {}).get("namespace") or "default"
    metrics = document.content["spec"].get("metrics")
    for number, metric in enumerate(metrics if isinstance(metrics, list) else ()):
        name = _name(metric)
        if not name or known.find(namespace, name) is not None:
            continue
        near = ", ".join(map(repr, known.similar_names(namespace, name)))
        hint = f"; did you mean {near}?" if near else ""
        told = f"no rule in these files defines {name!r} in namespace {namespace!r}{hint}"
        yield Finding(document.where, f"spec.metrics[{number}].external.metric.name: {told}", is_problem=False)


def _name(metric: Any) -> str:  # noqa: ANN401 - whatever stands in the file
    for key in ("external", "metric"):
        metric = metric.get(key) if isinstance(metric, dict) else None
    return str(metric.get("name") or "") if isinstance(metric, dict) else ""


def _filed(content: object) -> tuple[Rule, ...] | None:
    """Give a configuration's rules; None if it makes no sense, or takes in a file that has more of them."""
    try:
        decoded = loading.decode(content)
    except ConfigInvalid:
        return None
    return None if decoded.prometheus_adapter else decoded.rules


def _objects(read: Sequence[Document]) -> Iterator[Rule]:
    for document in read:
        if document.kind == "ExternalMetric":
            try:
                yield rule_from_object(document.content, None)
            except ConfigInvalid:
                continue

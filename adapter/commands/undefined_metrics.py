"""Detection of external metrics in autoscalers that no rule in the checked files defines."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from adapter.commands.documents import CheckMessage, Document
from adapter.config.model import Config
from adapter.custom_resources.external_metric import rule_from_object
from adapter.decoding.problem import ConfigInvalid
from adapter.rules.rule import Rule
from adapter.rules.rule_set import RuleSet

_AUTOSCALERS: Final = frozenset({"PodAutoscaler", "HorizontalPodAutoscaler"})


def undefined_metrics(documents: Sequence[Document], configs: Sequence[Config]) -> Iterator[CheckMessage]:
    """Yield a note for each undefined metric; none without a configuration that defines all its rules itself."""
    complete = [config for config in configs if not config.prometheus_adapter]
    if not complete:
        return
    rules = RuleSet([*(rule for config in complete for rule in config.rules), *_object_rules(documents)])
    for document in documents:
        if document.kind in _AUTOSCALERS and isinstance(document.content.get("spec"), dict):
            yield from _undefined_in(document, rules)


def _undefined_in(document: Document, rules: RuleSet) -> Iterator[CheckMessage]:
    namespace = (document.content.get("metadata") or {}).get("namespace") or "default"
    metrics = document.content["spec"].get("metrics")
    for index, metric in enumerate(metrics if isinstance(metrics, list) else ()):
        name = _external_name(metric)
        if not name or rules.find(namespace, name) is not None:
            continue
        similar = ", ".join(map(repr, rules.similar_names(namespace, name)))
        hint = f"; did you mean {similar}?" if similar else ""
        text = f"no rule in these files defines {name!r} in namespace {namespace!r}{hint}"
        path = f"spec.metrics[{index}].external.metric.name"
        yield CheckMessage(document.location, f"{path}: {text}", is_problem=False)


def _external_name(metric: Any) -> str:  # noqa: ANN401 - unvalidated YAML
    for key in ("external", "metric"):
        metric = metric.get(key) if isinstance(metric, dict) else None
    return str(metric.get("name") or "") if isinstance(metric, dict) else ""


def _object_rules(documents: Sequence[Document]) -> Iterator[Rule]:
    for document in documents:
        if document.kind == "ExternalMetric":
            with suppress(ConfigInvalid):
                yield rule_from_object(document.content, None)

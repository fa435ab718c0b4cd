"""Problems of Kubernetes objects: those that the API server rejects with strict field validation, and those of a rule.

Sources of the rules are the schema of the CustomResourceDefinition for PodAutoscaler and ExternalMetric,
`autoscaler.validation` for the rules on several fields and for an HPA, and `adapter.rules` for what the API server
cannot know, such as an invalid query.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from adapter.backends.configuration import BackendEntry
from adapter.custom_resources import external_metric
from adapter.custom_resources.definitions import schema_of
from adapter.decoding import structural_schema
from adapter.decoding.problem import ConfigInvalid, Problem
from autoscaler.settings import FeatureGates, Settings
from autoscaler.validation import document_problems, is_within, metadata_problems
from autoscaler.wire import FieldError

_SAMPLES: Final[Mapping[str, object]] = {
    "backend": "sample",
    "query": "sample",
    "parameters": {"queue": "sample"},
    "static": [{"value": 1}],
}
"""Values of the fields of an ExternalMetric that depend on each other, instead of invalid ones."""


def autoscaler_problems(content: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of a PodAutoscaler or an HPA."""
    errors = document_problems(content, gates=FeatureGates(), settings=Settings())
    found = _as_problems(errors)
    if content.get("kind") == "PodAutoscaler":
        found = [*_version_problems(content), *found]
        found += _not_explained(_selector_problems(content.get("spec")), found, set())
        found += _not_explained(_structural_problems("podautoscalers", content), found, _suggestions(errors))
    return found


def external_metric_problems(content: Mapping[str, Any], backends: Mapping[str, BackendEntry] | None) -> list[Problem]:
    """Return the problems of an ExternalMetric; of its query and parameters as far as its backend is known."""
    unknown = tuple(structural_schema.unknown_fields(schema_of("externalmetrics"), content))
    found = [*_version_problems(content), *_as_problems((*metadata_problems(content.get("metadata")), *unknown))]
    structural = list(_structural_problems("externalmetrics", content))
    misspelled = _suggestions(unknown)
    of_rule = _not_explained(_rule_problems(content, structural, backends), [*found, *structural], misspelled)
    found += of_rule
    return [*found, *_not_explained(structural, found, misspelled)]


def _version_problems(content: Mapping[str, Any]) -> list[Problem]:
    version = content.get("apiVersion")
    if version == external_metric.GROUP_VERSION:
        return []
    return [Problem("apiVersion", f"must be {external_metric.GROUP_VERSION}", value=version)]


def _as_problems(errors: Iterable[FieldError]) -> list[Problem]:
    return [Problem(error.path, error.message) for error in errors]


def _suggestions(errors: Iterable[FieldError]) -> set[str]:
    """Return the fields that are missing only because they are misspelled."""
    return {error.suggestion for error in errors if error.suggestion}


def _selector_problems(spec: object) -> Iterator[Problem]:
    """Yield the requirements of selectors with values that do not fit the operator; an HPA may be stored with them."""
    metrics = spec.get("metrics") if isinstance(spec, Mapping) else None
    for index, metric in enumerate(metrics if isinstance(metrics, list) else ()):
        for source in ("external", "object", "pods"):
            requirements = _at(metric, source, "metric", "selector", "matchExpressions")
            for number, one in enumerate(requirements if isinstance(requirements, list) else ()):
                operator, has_values = _at(one, "operator"), _at(one, "values") not in (None, [])
                path = f"spec.metrics[{index}].{source}.metric.selector.matchExpressions[{number}].values"
                if operator in ("In", "NotIn") and not has_values:
                    yield Problem(path, f"Required value: the operator {operator} requires values")
                if operator in ("Exists", "DoesNotExist") and has_values:
                    yield Problem(path, f"Forbidden: the operator {operator} permits no values")


def _at(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _structural_problems(plural: str, content: Mapping[str, Any]) -> Iterator[Problem]:
    schema, pruned = schema_of(plural), copy.deepcopy({**content, "status": None})
    structural_schema.prune_and_default(schema, pruned)
    return structural_schema.problems(schema, pruned)


def _not_explained(problems: Iterable[Problem], known: Iterable[Problem], misspelled: set[str]) -> list[Problem]:
    """Return the problems of fields for which, and for whose parents and children, no other problem is known."""
    paths = {problem.path for problem in known} | misspelled
    return [one for one in problems if not is_within(one.path, paths) and not _has_part(one.path, paths)]


def _has_part(path: str, paths: Iterable[str]) -> bool:
    return any(is_within(other, {path}) for other in paths)


def _rule_problems(
    content: Mapping[str, Any], structural: Iterable[Problem], backends: Mapping[str, BackendEntry] | None
) -> list[Problem]:
    """Return the problems of the rule that remain whatever the structurally invalid fields are meant to be."""
    if not isinstance(content.get("spec"), Mapping) or not isinstance(content.get("metadata"), Mapping):
        return []
    pruned = copy.deepcopy(dict(content))
    structural_schema.prune_and_default(schema_of("externalmetrics"), pruned)
    invalid = {problem.path.split(".")[1].split("[")[0] for problem in structural if problem.path.startswith("spec.")}
    valid = {key: value for key, value in pruned["spec"].items() if key not in invalid}
    samples = {key: _SAMPLES[key] for key in invalid & _SAMPLES.keys()}
    first, second = (_problems_of_rule({**content, "spec": spec}, backends) for spec in (valid, {**valid, **samples}))
    return [problem for problem in first if problem in second]


def _problems_of_rule(content: Mapping[str, Any], backends: Mapping[str, BackendEntry] | None) -> tuple[Problem, ...]:
    try:
        external_metric.rule_from_object(content, backends)
    except ConfigInvalid as error:
        return error.problems
    return ()

"""Validates an autoscaler as it is written in a file: unknown fields, wrong types and the rules of validation, at once.

A rule may concern several fields, one of which has a wrong type and therefore no value. Its problem is reported only if
it remains with every value that the field may be meant to have.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import PAUSED_ANNOTATION, PAUSED_VALUES, Autoscaler
from autoscaler.validation.preparation import prepare
from autoscaler.validation.problem import ValidationProblem
from autoscaler.validation.validate import problems
from autoscaler.wire import FieldError, decode_autoscaler
from autoscaler.wire.document import unknown_keys
from autoscaler.wire.undecodable import undecodable_values, variants

_VALID_SPEC: Final = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "any"},
    "maxReplicas": 1,
}


def document_problems(
    document: Mapping[str, Any], *, gates: FeatureGates, settings: Settings
) -> tuple[FieldError, ...]:
    """Return all problems of a new autoscaler; its status is ignored, as the API server does."""
    unknown = tuple(unknown_keys(document, Autoscaler))
    document = {key: value for key, value in document.items() if key != "status"}
    undecodable = undecodable_values(document, Autoscaler)
    explained = {error.suggestion for error in unknown} | {value.error.path for value in undecodable}
    found = [_rule_problems(variant, gates, settings) for variant in variants(document, undecodable)]
    remaining = (problem for problem in found[0] if all(problem in others for others in found[1:]))
    violated = (FieldError(one.path, one.body) for one in remaining if not is_within(one.path, explained))
    return (*unknown, *(value.error for value in undecodable), *violated, *_annotation_errors(document))


def _annotation_errors(document: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield the error of an invalid pause annotation, which the API server does not validate."""
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    value = annotations.get(PAUSED_ANNOTATION) if isinstance(annotations, Mapping) else None
    if isinstance(value, str) and value not in PAUSED_VALUES:
        path = f"metadata.annotations[{PAUSED_ANNOTATION}]"
        yield FieldError(path, f'must be "true" or "false", is "{value}"; any other value pauses the autoscaler')


def metadata_problems(metadata: object) -> tuple[FieldError, ...]:
    """Return all problems of the metadata of a new object of any kind; the namespace may be left out."""
    found = document_problems({"metadata": metadata, "spec": _VALID_SPEC}, gates=FeatureGates(), settings=Settings())
    return tuple(error for error in found if is_within(error.path, {"metadata"}))


def is_within(path: str, parents: set[str]) -> bool:
    """Return whether a path is one of ``parents`` or below one of them."""
    return any(parent in parents for parent in _with_parents(path))


def _with_parents(path: str) -> Iterator[str]:
    yield path
    for position, character in enumerate(path):
        if character in ".[":
            yield path[:position]


def _rule_problems(
    document: Mapping[str, Any], gates: FeatureGates, settings: Settings
) -> tuple[ValidationProblem, ...]:
    decoded = decode_autoscaler(document)
    metadata = replace(decoded.metadata, namespace=decoded.metadata.namespace or "default")
    complete = replace(decoded, metadata=metadata, spec=with_defaults(decoded.spec))
    return tuple(dict.fromkeys(problems(prepare(complete, gates=gates), gates=gates, settings=settings)))

"""Validates an autoscaler like the API server.

Kubernetes validates an object with hand-written rules and with rules declared on its types, and merges the results.
``problems`` returns the problems of the hand-written rules, ``api_server_problems`` the merged list.
"""

from collections.abc import Iterable, Iterator

from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.spec import Spec
from autoscaler.validation.metadata import (
    created_metadata_problems,
    stored_metadata_problems,
    updated_metadata_problems,
)
from autoscaler.validation.problem import ProblemKind, ValidationProblem, invalid, required
from autoscaler.validation.spec import min_allowed_replicas, rules_for, spec_problems


def problems(
    autoscaler: Autoscaler, *, gates: FeatureGates, settings: Settings, old: Autoscaler | None = None
) -> tuple[ValidationProblem, ...]:
    """Return all problems of a new autoscaler, or of an update of ``old``.

    Both must have their defaults, and the new one must be prepared.
    """
    rules = rules_for(autoscaler.spec, gates=gates, settings=settings, old=old.spec if old else None)
    metadata = (
        updated_metadata_problems(autoscaler.metadata, old.metadata)
        if old
        else created_metadata_problems(autoscaler.metadata)
    )
    return (*metadata, *spec_problems(autoscaler.spec, rules))


def api_server_problems(
    found: Iterable[ValidationProblem], autoscaler: Autoscaler, *, gates: FeatureGates, old: Autoscaler | None = None
) -> tuple[ValidationProblem, ...]:
    """Merge ``problems`` with those of the declared rules, as in the API server's response."""
    declared = tuple(_declared(autoscaler.spec, gates, old.spec if old else None))
    common = _common_on_update(autoscaler, old) if old else ()
    unique = {str(problem): problem for problem in (*common, *found)}
    hand_written = (
        problem for problem in unique.values() if not any(_is_duplicate(problem, other) for other in declared)
    )
    return (*hand_written, *declared)


def _common_on_update(autoscaler: Autoscaler, old: Autoscaler) -> Iterator[ValidationProblem]:
    """Yield the problems that the API server finds on update before the rules of the kind."""
    yield from stored_metadata_problems(autoscaler.metadata)
    yield from updated_metadata_problems(autoscaler.metadata, old.metadata)


def _declared(spec: Spec, gates: FeatureGates, old: Spec | None) -> Iterator[ValidationProblem]:
    """Yield the problems of the declared rules, which skip fields that an update does not change."""
    minimum = min_allowed_replicas(gates, old)
    if (
        spec.min_replicas is not None
        and spec.min_replicas < minimum
        and not (old and old.min_replicas == spec.min_replicas)
    ):
        yield invalid("spec.minReplicas", spec.min_replicas, f"must be greater than or equal to {minimum}")
    if old and old.max_replicas == spec.max_replicas:
        return
    if spec.max_replicas == 0:
        yield required("spec.maxReplicas")
    elif spec.max_replicas < 0:
        yield invalid("spec.maxReplicas", spec.max_replicas, "must be greater than or equal to 1")


def _is_duplicate(problem: ValidationProblem, declared: ValidationProblem) -> bool:
    """Return whether both report the same; for a missing value the details may differ."""
    both_required = problem.kind is declared.kind is ProblemKind.REQUIRED
    return problem == declared or (both_required and problem.path == declared.path)

"""Validates an autoscaler like the API server: metadata, bounds, target, metrics, behavior and mode, in this order.

Kubernetes validates an object with hand-written rules and with rules declared on its types, and merges the results.
``problems`` returns the problems of the hand-written rules, ``api_server_problems`` the merged list.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.spec import ACTIVE, DRY_RUN, OBJECT, PAUSED, Spec
from autoscaler.validation.behavior import behavior_problems
from autoscaler.validation.metadata import (
    created_metadata_problems,
    stored_metadata_problems,
    updated_metadata_problems,
)
from autoscaler.validation.metrics import MetricRules, metrics_problems
from autoscaler.validation.problem import (
    ProblemKind,
    ValidationProblem,
    forbidden,
    invalid,
    not_supported,
    required,
)
from autoscaler.validation.reference import ApiVersionRule, api_version_problem, reference_problems

_MODES: Final = (ACTIVE, DRY_RUN, PAUSED)


def problems(
    autoscaler: Autoscaler, *, gates: FeatureGates, settings: Settings, old: Autoscaler | None = None
) -> tuple[ValidationProblem, ...]:
    """Return all problems of a new autoscaler, or of an update of ``old``, which may keep values already stored.

    Both must have their defaults, and the new one must be prepared.
    """
    metadata_problems = (
        updated_metadata_problems(autoscaler.metadata, old.metadata)
        if old
        else created_metadata_problems(autoscaler.metadata)
    )
    return (*metadata_problems, *_spec_problems(autoscaler.spec, old.spec if old else None, gates, settings))


def stored_problems(
    autoscaler: Autoscaler, *, gates: FeatureGates, settings: Settings
) -> tuple[ValidationProblem, ...]:
    """Return the problems of a stored autoscaler, with defaults, as those of an update that changes nothing.

    The API server accepted the object with the gates and settings of that time. A value that they permitted stays
    valid, as in an HPA: kube-controller-manager validates no stored object.
    """
    return tuple(_spec_problems(autoscaler.spec, autoscaler.spec, gates, settings))


def _spec_problems(
    spec: Spec, old_spec: Spec | None, gates: FeatureGates, settings: Settings
) -> Iterator[ValidationProblem]:
    rules = MetricRules(
        _described_object_rule(old_spec), int(settings.fallback_floor.total_seconds()), _stored_durations(old_spec)
    )
    return chain(
        _bounds_problems(spec, _min_allowed_replicas(gates, old_spec)),
        reference_problems(spec.scale_target_ref, "spec.scaleTargetRef", _scale_target_rule(spec, old_spec)),
        metrics_problems(spec.metrics or (), min_replicas=spec.min_replicas, rules=rules),
        behavior_problems(spec.behavior),
        _mode_problems(spec),
    )


def api_server_problems(
    hand_written: Iterable[ValidationProblem],
    autoscaler: Autoscaler,
    *,
    gates: FeatureGates,
    old: Autoscaler | None = None,
) -> tuple[ValidationProblem, ...]:
    """Merge the result of ``problems`` with the problems of the declared rules, as in the API server's response."""
    declared = tuple(_declared_problems(autoscaler.spec, gates, old.spec if old else None))
    # On update, the API server first applies the metadata rules of all kinds, then those of the kind.
    common = (
        (*stored_metadata_problems(autoscaler.metadata), *updated_metadata_problems(autoscaler.metadata, old.metadata))
        if old
        else ()
    )
    unique = {str(problem): problem for problem in (*common, *hand_written)}
    not_declared = (
        problem for problem in unique.values() if not any(_is_duplicate(problem, other) for other in declared)
    )
    return (*not_declared, *declared)


def _bounds_problems(spec: Spec, minimum: int) -> Iterator[ValidationProblem]:
    yield from _min_replicas_problems(spec, minimum)
    yield from _max_replicas_problems(spec, "must be set and greater than 0")
    if spec.min_replicas is not None and spec.max_replicas < spec.min_replicas:
        yield invalid("spec.maxReplicas", spec.max_replicas, "must be greater than or equal to `minReplicas`")


def _declared_problems(spec: Spec, gates: FeatureGates, old: Spec | None) -> Iterator[ValidationProblem]:
    """Yield the problems of the declared rules, which skip fields that an update does not change."""
    if old is None or old.min_replicas != spec.min_replicas:
        yield from _min_replicas_problems(spec, _min_allowed_replicas(gates, old))
    if old is None or old.max_replicas != spec.max_replicas:
        yield from _max_replicas_problems(spec, "")


def _min_replicas_problems(spec: Spec, minimum: int) -> Iterator[ValidationProblem]:
    if spec.min_replicas is not None and spec.min_replicas < minimum:
        yield invalid("spec.minReplicas", spec.min_replicas, f"must be greater than or equal to {minimum}")


def _max_replicas_problems(spec: Spec, missing: str) -> Iterator[ValidationProblem]:
    if spec.max_replicas == 0:
        yield required("spec.maxReplicas", missing)
    elif spec.max_replicas < 0:
        yield invalid("spec.maxReplicas", spec.max_replicas, "must be greater than or equal to 1")


def _min_allowed_replicas(gates: FeatureGates, old: Spec | None) -> int:
    return 0 if gates.HPAScaleToZero or (old is not None and old.min_replicas == 0) else 1


def _mode_problems(spec: Spec) -> Iterator[ValidationProblem]:
    if spec.mode is not None and spec.mode not in _MODES:
        yield not_supported("spec.mode", spec.mode, _MODES)
    if spec.paused_until is not None and spec.mode != PAUSED:
        yield forbidden("spec.pausedUntil", "may only be set together with `mode: Paused`; set that, or remove this")


def _scale_target_rule(spec: Spec, old: Spec | None) -> ApiVersionRule:
    target = spec.scale_target_ref
    if old is not None:
        before = old.scale_target_ref
        if (before.api_version, before.kind) == (target.api_version, target.kind):
            return ApiVersionRule.UNCHECKED
    # ReplicationController is the only scalable kind of the core group.
    is_core = target.kind == "ReplicationController"
    return ApiVersionRule.CORE_ALLOWED if is_core else ApiVersionRule.GROUP_REQUIRED


def _described_object_rule(old: Spec | None) -> ApiVersionRule:
    versions = (
        metric.object.described_object.api_version
        for metric in (old and old.metrics) or ()
        if metric.type == OBJECT and metric.object is not None
    )
    rule = ApiVersionRule.CORE_ALLOWED
    return ApiVersionRule.UNCHECKED if any(api_version_problem(version, rule) for version in versions) else rule


def _stored_durations(old: Spec | None) -> frozenset[int]:
    fallbacks = (metric.external.fallback for metric in (old and old.metrics) or () if metric.external is not None)
    durations = (fallback.failure_duration_seconds for fallback in fallbacks if fallback is not None)
    return frozenset(duration for duration in durations if duration is not None)


def _is_duplicate(problem: ValidationProblem, declared: ValidationProblem) -> bool:
    """Return whether both report the same; for a missing value the details may differ."""
    both_required = problem.kind is declared.kind is ProblemKind.REQUIRED
    return problem == declared or (both_required and problem.path == declared.path)

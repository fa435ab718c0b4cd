"""Validates a spec: bounds, target, metrics, behavior and mode, in Kubernetes' order."""

from collections.abc import Iterator
from typing import Final

from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.record import Record
from autoscaler.types.spec import ACTIVE, DRY_RUN, OBJECT, PAUSED, Spec
from autoscaler.validation.behavior import behavior_problems
from autoscaler.validation.metrics import MetricRules, metrics_problems
from autoscaler.validation.problem import ValidationProblem, forbidden, invalid, not_supported, required
from autoscaler.validation.reference import ApiVersionRule, api_version_problem, reference_problems

_MODES: Final = (ACTIVE, DRY_RUN, PAUSED)
_CORE_ALLOWED: Final = ApiVersionRule(may_be_core=True)
_UNCHECKED: Final = ApiVersionRule(unchecked=True)


class Rules(Record):
    """Parameters of the validation of a spec."""

    min_allowed_replicas: int
    scale_target: ApiVersionRule
    metrics: MetricRules


def rules_for(spec: Spec, *, gates: FeatureGates, settings: Settings, old: Spec | None) -> Rules:
    """Return the parameters; an update may keep values that are already stored."""
    return Rules(
        min_allowed_replicas=min_allowed_replicas(gates, old),
        scale_target=_scale_target_rule(spec, old),
        metrics=MetricRules(_described_object_rule(old), int(settings.fallback_floor.total_seconds())),
    )


def min_allowed_replicas(gates: FeatureGates, old: Spec | None) -> int:
    """Return the lowest allowed minReplicas."""
    return 0 if gates.HPAScaleToZero or (old is not None and old.min_replicas == 0) else 1


def spec_problems(spec: Spec, rules: Rules) -> Iterator[ValidationProblem]:
    """Yield the problems of a spec."""
    yield from _bounds_problems(spec, rules.min_allowed_replicas)
    yield from reference_problems(spec.scale_target_ref, "spec.scaleTargetRef", rules.scale_target)
    yield from metrics_problems(spec.metrics or (), "spec.metrics", min_replicas=spec.min_replicas, rules=rules.metrics)
    yield from behavior_problems(spec.behavior, "spec.behavior")
    yield from _mode_problems(spec)


def _bounds_problems(spec: Spec, minimum: int) -> Iterator[ValidationProblem]:
    if spec.min_replicas is not None and spec.min_replicas < minimum:
        yield invalid("spec.minReplicas", spec.min_replicas, f"must be greater than or equal to {minimum}")
    if spec.max_replicas == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif spec.max_replicas < 0:
        yield invalid("spec.maxReplicas", spec.max_replicas, "must be greater than or equal to 1")
    if spec.min_replicas is not None and spec.max_replicas < spec.min_replicas:
        yield invalid("spec.maxReplicas", spec.max_replicas, "must be greater than or equal to `minReplicas`")


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
            return _UNCHECKED
    # ReplicationController is the only scalable kind of the core group.
    return ApiVersionRule(may_be_core=target.kind == "ReplicationController")


def _described_object_rule(old: Spec | None) -> ApiVersionRule:
    described = (
        metric.object.described_object
        for metric in (old and old.metrics) or ()
        if metric.type == OBJECT and metric.object is not None
    )
    return _UNCHECKED if any(api_version_problem(ref, _CORE_ALLOWED) for ref in described) else _CORE_ALLOWED

"""Validates spec.behavior: windows, policies and tolerances."""

from collections.abc import Iterator
from typing import Final

from autoscaler.types.spec import (
    PERCENT_POLICY,
    PODS_POLICY,
    SELECT_DISABLED,
    SELECT_MAX,
    SELECT_MIN,
    Behavior,
    Policy,
    ScalingRules,
)
from autoscaler.validation.problem import ValidationProblem, invalid, not_supported, required

MAX_PERIOD_SECONDS: Final = 1800
MAX_WINDOW_SECONDS: Final = 3600

_POLICY_TYPES: Final = (PODS_POLICY, PERCENT_POLICY)
_SELECT_POLICIES: Final = (SELECT_MAX, SELECT_MIN, SELECT_DISABLED)


def behavior_problems(behavior: Behavior | None) -> Iterator[ValidationProblem]:
    if behavior is None:
        return
    for rules, direction in ((behavior.scale_up, "scaleUp"), (behavior.scale_down, "scaleDown")):
        if rules is not None:
            yield from _rules_problems(rules, f"spec.behavior.{direction}")


def _rules_problems(rules: ScalingRules, path: str) -> Iterator[ValidationProblem]:
    seconds = rules.stabilization_window_seconds
    if seconds is not None and seconds < 0:
        yield invalid(f"{path}.stabilizationWindowSeconds", seconds, "must be greater than or equal to zero")
    if seconds is not None and seconds > MAX_WINDOW_SECONDS:
        detail = f"must be less than or equal to {MAX_WINDOW_SECONDS}"
        yield invalid(f"{path}.stabilizationWindowSeconds", seconds, detail)
    if rules.select_policy is not None and rules.select_policy not in _SELECT_POLICIES:
        yield not_supported(f"{path}.selectPolicy", rules.select_policy, _SELECT_POLICIES)
    if not rules.policies:
        yield required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(rules.policies or ()):
        yield from _policy_problems(policy, f"{path}.policies[{index}]")
    if rules.tolerance is not None and rules.tolerance.sign() < 0:
        yield invalid(f"{path}.tolerance", str(rules.tolerance), "must be greater than or equal to 0")


def _policy_problems(policy: Policy, path: str) -> Iterator[ValidationProblem]:
    if policy.type not in _POLICY_TYPES:
        yield not_supported(f"{path}.type", policy.type, _POLICY_TYPES)
    if policy.value <= 0:
        yield invalid(f"{path}.value", policy.value, "must be greater than zero")
    if policy.period_seconds <= 0:
        yield invalid(f"{path}.periodSeconds", policy.period_seconds, "must be greater than zero")
    if policy.period_seconds > MAX_PERIOD_SECONDS:
        detail = f"must be less than or equal to {MAX_PERIOD_SECONDS}"
        yield invalid(f"{path}.periodSeconds", policy.period_seconds, detail)

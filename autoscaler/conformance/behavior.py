"""Run the conformance cases of what upstream does with a recommendation: stabilize, limit, and record the rescale."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from autoscaler.algorithm import conditions
from autoscaler.algorithm.conditions import ConditionUpdate
from autoscaler.algorithm.limit import limit, record_rescale
from autoscaler.algorithm.stabilize import stabilize, windows
from autoscaler.conformance.inputs import EPOCH, Comparison, Json, decode_history, encode_history
from autoscaler.defaults import with_defaults
from autoscaler.settings import Settings
from autoscaler.types.spec import Behavior, Spec
from autoscaler.wire import decode_spec, encode

_STABILIZATION: Final = ("stabilized", "recommendationsAfter")
_RATE: Final = ("effectiveBehavior", "limited", "scaleUpLimit", "scaleDownLimit")
_EVENTS: Final = ("scaleUpEventsAfter", "scaleDownEventsAfter")
_PIPELINE: Final = (*_STABILIZATION, *_RATE, *_EVENTS, "desired", "ableToScale", "scalingLimited")
_OUTPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "noBehavior": _PIPELINE,
    "withBehavior": _PIPELINE,
    "stabilize": _STABILIZATION,
    "stabilizeWithBehavior": _STABILIZATION,
    "rate": _RATE,
    "rules": ("limited",),
    "storeEvent": _EVENTS,
}
"""The outputs to compare, by the kind of the case: what the upstream function of that kind returns."""


def run(case: Json, _document: Json) -> Comparison:
    """Run stabilization and limits.

    In a case of the whole pipeline, each stage gets the result of the previous one. In a case of a single upstream
    function, the stage gets ``desiredReplicas``.
    """
    kind, current, desired = case["kind"], case["currentReplicas"], case["desiredReplicas"]
    settings = Settings(downscale_stabilization=timedelta(seconds=case["downscaleStabilizationWindow"]))
    behavior, history = _behavior(case), decode_history(case)
    stabilized = stabilize(desired, current, history.recommendations, behavior, settings, EPOCH)
    is_pipeline = _OUTPUTS[kind] is _PIPELINE
    unlimited = stabilized.step.replicas if is_pipeline else desired
    limited = limit(unlimited, current, (case["minReplicas"], case["maxReplicas"]), behavior, history, EPOCH)
    replicas = limited.replicas if is_pipeline else desired
    if replicas != current or kind == "storeEvent":
        history = record_rescale(history, behavior, current, replicas, EPOCH)
    after = encode_history(replace(history, recommendations=stabilized.recommendations), EPOCH)
    condition = conditions.LIMITED[limited.limit]
    outputs = {
        "effectiveBehavior": _effective(case, behavior, settings),
        "stabilized": {"replicas": stabilized.step.replicas, **_stabilization_reason(case, behavior)},
        "limited": {"replicas": limited.replicas, "reason": condition.reason, "message": condition.message},
        "scaleUpLimit": limited.rate if behavior is None or unlimited > current else None,
        "scaleDownLimit": limited.rate if behavior is not None and unlimited < current else None,
        "desired": replicas,
        "ableToScale": _condition(conditions.stabilization(stabilized.step)),
        "scalingLimited": _condition(condition),
        **{f"{key}After": entries or None for key, entries in after.items()},
    }
    return {**case["expect"], "platformDependent": None}, {key: outputs[key] for key in _OUTPUTS[kind]}


def _behavior(case: Json) -> Behavior | None:
    spec = decode_spec({"behavior": case.get("behavior")})
    return (spec if case.get("behaviorIsFinal") else with_defaults(spec)).behavior


def _stabilization_reason(case: Json, behavior: Behavior | None) -> Json:
    """Return upstream's reason and message. If there is a behavior, upstream sets them even if no window applied."""
    if behavior is None:
        return {"reason": "", "message": ""}
    scales_up = case["desiredReplicas"] >= case["currentReplicas"]
    condition = conditions.SCALE_UP_STABILIZED if scales_up else conditions.SCALE_DOWN_STABILIZED
    return {"reason": condition.reason, "message": condition.message}


def _condition(condition: ConditionUpdate) -> Json:
    return {"status": condition.status, "reason": condition.reason, "message": condition.message}


def _effective(case: Json, behavior: Behavior | None, settings: Settings) -> object:
    """Return the behavior with the default scale-down window, unless the case marks its behavior as final."""
    if behavior is not None and behavior.scale_down is not None and not case.get("behaviorIsFinal"):
        seconds = int(windows(behavior, settings)[1].total_seconds())
        behavior = replace(behavior, scale_down=replace(behavior.scale_down, stabilization_window_seconds=seconds))
    return encode(Spec(behavior=behavior)).get("behavior")

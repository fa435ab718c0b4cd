"""Run the vectors of upstream's normalization: stabilization, scaling policies, bounds and recorded rescales."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from autoscaler.algorithm import conditions
from autoscaler.algorithm.conditions import ConditionUpdate
from autoscaler.algorithm.limit import default_rate, limit, record_rescale
from autoscaler.algorithm.stabilize import stabilize, windows
from autoscaler.conformance.inputs import EPOCH, Json
from autoscaler.conformance.result import Case, Difference, Document, compare
from autoscaler.defaults import with_defaults
from autoscaler.settings import Settings
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.spec import Spec
from autoscaler.types.steps import LimitStep, StabilizationStep
from autoscaler.wire import decode_spec, encode_spec

Outputs = dict[str, object]


def sections(document: Document) -> tuple[str, ...]:
    """Return the section of a normalization file, or nothing for other files."""
    cases = document.get("cases")
    return ("cases",) if isinstance(cases, list) and all("kind" in case for case in cases) else ()


def cases(document: Document) -> Iterator[Case]:
    """Yield every case."""
    for case in document["cases"]:
        yield Case(case["id"], partial(_differences, case))


class BehaviorCase:
    """One decoded case."""

    def __init__(self, given: Json) -> None:
        self.kind: str = given["kind"]
        self.expect: Json = given["expect"]
        self.current: int = given["currentReplicas"]
        self.desired: int = given["desiredReplicas"]
        self.bounds: tuple[int, int] = (given["minReplicas"], given["maxReplicas"])
        self.settings = Settings(downscale_stabilization=timedelta(seconds=given["downscaleStabilizationWindow"]))
        spec = decode_spec({"behavior": given.get("behavior")})
        self.is_final: bool = given.get("behaviorIsFinal", False)
        self.behavior = (spec if self.is_final else with_defaults(spec)).behavior
        self.history = History(
            tuple(Recommendation(entry["replicas"], _time_of(entry)) for entry in given["recommendations"]),
            _events(given["scaleUpEvents"]),
            _events(given["scaleDownEvents"]),
        )


def _differences(given: Json) -> Iterator[Difference]:
    case = BehaviorCase(given)
    outputs = _RUN_BY_KIND[case.kind](case)
    for key in ("recommendationsAfter", "scaleUpEventsAfter", "scaleDownEventsAfter"):
        if key in outputs and not outputs[key]:
            del outputs[key]
    expected = {key: value for key, value in case.expect.items() if key != "platformDependent"}
    yield from compare("", expected, outputs)


def _no_behavior(case: BehaviorCase) -> Outputs:
    result = stabilize(case.desired, case.current, case.history.recommendations, None, case.settings, EPOCH)
    limited = limit(result.step.replicas, case.current, case.bounds, None, case.history, EPOCH)
    return {
        "stabilized": {"replicas": result.step.replicas, "reason": "", "message": ""},
        "scaleUpLimit": default_rate(case.current),
        "limited": _limited(limited),
        "desired": limited.replicas,
        **_conditions(result.step, limited),
        "recommendationsAfter": _recommendations(result.recommendations),
    }


def _with_behavior(case: BehaviorCase) -> Outputs:
    stabilized, recommendations = _stabilized(case)
    desired = stabilized.replicas
    limited = limit(desired, case.current, case.bounds, case.behavior, case.history, EPOCH)
    history = case.history
    if limited.replicas != case.current:
        history = record_rescale(history, case.behavior, case.current, limited.replicas, EPOCH)
    return {
        "effectiveBehavior": _effective(case),
        "stabilized": _stabilized_output(stabilized, case),
        "limited": _limited(limited),
        "desired": limited.replicas,
        **_rates(limited, desired, case),
        **_conditions(stabilized, limited),
        "recommendationsAfter": _recommendations(recommendations),
        **_events_after(history),
    }


def _stabilize(case: BehaviorCase) -> Outputs:
    result = stabilize(case.desired, case.current, case.history.recommendations, None, case.settings, EPOCH)
    return {
        "stabilized": {"replicas": result.step.replicas, "reason": "", "message": ""},
        "recommendationsAfter": _recommendations(result.recommendations),
    }


def _stabilize_with_behavior(case: BehaviorCase) -> Outputs:
    stabilized, recommendations = _stabilized(case)
    return {
        "stabilized": _stabilized_output(stabilized, case),
        "recommendationsAfter": _recommendations(recommendations),
    }


def _rate(case: BehaviorCase) -> Outputs:
    limited = limit(case.desired, case.current, case.bounds, case.behavior, case.history, EPOCH)
    return {
        "effectiveBehavior": _effective(case),
        "limited": _limited(limited),
        **_rates(limited, case.desired, case),
    }


def _rules(case: BehaviorCase) -> Outputs:
    return {"limited": _limited(limit(case.desired, case.current, case.bounds, None, case.history, EPOCH))}


def _store_event(case: BehaviorCase) -> Outputs:
    return _events_after(record_rescale(case.history, case.behavior, case.current, case.desired, EPOCH))


_RUN_BY_KIND: Mapping[str, Callable[[BehaviorCase], Outputs]] = {
    "noBehavior": _no_behavior,
    "withBehavior": _with_behavior,
    "stabilize": _stabilize,
    "stabilizeWithBehavior": _stabilize_with_behavior,
    "rate": _rate,
    "rules": _rules,
    "storeEvent": _store_event,
}


def _stabilized(case: BehaviorCase) -> tuple[StabilizationStep, tuple[Recommendation, ...]]:
    result = stabilize(case.desired, case.current, case.history.recommendations, case.behavior, case.settings, EPOCH)
    return result.step, result.recommendations


def _stabilized_output(stabilized: StabilizationStep, case: BehaviorCase) -> Outputs:
    """Return upstream's reason and message, which it computes even if no window applied."""
    condition = conditions.SCALE_UP_STABILIZED if case.desired >= case.current else conditions.SCALE_DOWN_STABILIZED
    return {"replicas": stabilized.replicas, "reason": condition.reason, "message": condition.message}


def _limited(limited: LimitStep) -> Outputs:
    condition = conditions.LIMITED[limited.limit]
    return {"replicas": limited.replicas, "reason": condition.reason, "message": condition.message}


def _rates(limited: LimitStep, desired: int, case: BehaviorCase) -> Outputs:
    if desired == case.current:
        return {}
    return {"scaleUpLimit" if desired > case.current else "scaleDownLimit": limited.rate}


def _conditions(stabilized: StabilizationStep, limited: LimitStep) -> Outputs:
    return {
        "ableToScale": _condition(conditions.stabilization(stabilized)),
        "scalingLimited": _condition(conditions.LIMITED[limited.limit]),
    }


def _condition(condition: ConditionUpdate) -> Outputs:
    return {"status": condition.status, "reason": condition.reason, "message": condition.message}


def _effective(case: BehaviorCase) -> object:
    """Return the behavior with the default scale-down window, unless the case marks its behavior as final."""
    behavior = case.behavior
    if behavior is not None and behavior.scale_down is not None and not case.is_final:
        _, down = windows(behavior, case.settings)
        scale_down = replace(behavior.scale_down, stabilization_window_seconds=int(down.total_seconds()))
        behavior = replace(behavior, scale_down=scale_down)
    return encode_spec(Spec(behavior=behavior)).get("behavior")


def _time_of(entry: Json) -> datetime:
    return EPOCH - timedelta(seconds=entry["age"])


def _events(given: Sequence[Json]) -> tuple[ScaleEvent, ...]:
    return tuple(ScaleEvent(entry["change"], _time_of(entry), entry.get("outdated", False)) for entry in given)


def _age(at: datetime) -> int:
    return round((EPOCH - at).total_seconds())


def _recommendations(recommendations: Sequence[Recommendation]) -> list[Outputs]:
    return [{"replicas": entry.replicas, "age": _age(entry.at)} for entry in recommendations]


def _events_after(history: History) -> Outputs:
    return {
        "scaleUpEventsAfter": _event_outputs(history.scale_ups),
        "scaleDownEventsAfter": _event_outputs(history.scale_downs),
    }


def _event_outputs(events: Sequence[ScaleEvent]) -> list[Outputs]:
    return [{"change": entry.change, "age": _age(entry.at), "outdated": entry.outdated} for entry in events]

"""Runs the vectors of upstream's normalisation: stabilization, rate policies, bounds and the memory of rescales."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from autoscaler.algorithm import conditions
from autoscaler.algorithm.conditions import Finding
from autoscaler.algorithm.limit import legacy_rate, limit, remember_rescale
from autoscaler.algorithm.stabilize import stabilize, windows
from autoscaler.conformance.inputs import EPOCH, Json
from autoscaler.conformance.result import Case, Difference, Document, compare
from autoscaler.defaults import with_defaults
from autoscaler.settings import Settings
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.spec import Spec
from autoscaler.types.steps import Limited, Stabilized
from autoscaler.wire import decode_spec, encode_spec

Outputs = dict[str, object]


def sections(document: Document) -> tuple[str, ...]:
    """Recognise a file of normalisations."""
    cases = document.get("cases")
    return ("cases",) if isinstance(cases, list) and all("kind" in case for case in cases) else ()


def cases(document: Document) -> Iterator[Case]:
    """Give every normalisation."""
    for case in document["cases"]:
        yield Case(case["id"], partial(_differences, case))


class Given:
    """One case, decoded."""

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
        self.past = History(
            tuple(Recommendation(one["replicas"], _ago(one)) for one in given["recommendations"]),
            _events(given["scaleUpEvents"]),
            _events(given["scaleDownEvents"]),
        )


def _differences(given: Json) -> Iterator[Difference]:
    case = Given(given)
    outputs = _RUNS[case.kind](case)
    for key in ("recommendationsAfter", "scaleUpEventsAfter", "scaleDownEventsAfter"):
        if key in outputs and not outputs[key]:
            del outputs[key]
    expected = {key: value for key, value in case.expect.items() if key != "platformDependent"}
    yield from compare("", expected, outputs)


def _no_behavior(case: Given) -> Outputs:
    steadied = stabilize(case.desired, case.current, case.past.recommendations, None, case.settings, EPOCH)
    limited = limit(steadied.step.replicas, case.current, case.bounds, None, case.past, EPOCH)
    return {
        "stabilized": {"replicas": steadied.step.replicas, "reason": "", "message": ""},
        "scaleUpLimit": legacy_rate(case.current),
        "limited": _limited(limited),
        "desired": limited.replicas,
        **_conditions(steadied.step, limited),
        "recommendationsAfter": _recommendations(steadied.remembered),
    }


def _with_behavior(case: Given) -> Outputs:
    stabilized, remembered = _steady(case)
    steady = stabilized.replicas
    limited = limit(steady, case.current, case.bounds, case.behavior, case.past, EPOCH)
    past = case.past
    if limited.replicas != case.current:
        past = remember_rescale(past, case.behavior, case.current, limited.replicas, EPOCH)
    return {
        "effectiveBehavior": _effective(case),
        "stabilized": _told(stabilized, case),
        "limited": _limited(limited),
        "desired": limited.replicas,
        **_rates(limited, steady, case),
        **_conditions(stabilized, limited),
        "recommendationsAfter": _recommendations(remembered),
        **_events_after(past),
    }


def _stabilize(case: Given) -> Outputs:
    steadied = stabilize(case.desired, case.current, case.past.recommendations, None, case.settings, EPOCH)
    return {
        "stabilized": {"replicas": steadied.step.replicas, "reason": "", "message": ""},
        "recommendationsAfter": _recommendations(steadied.remembered),
    }


def _stabilize_with_behavior(case: Given) -> Outputs:
    stabilized, remembered = _steady(case)
    return {"stabilized": _told(stabilized, case), "recommendationsAfter": _recommendations(remembered)}


def _rate(case: Given) -> Outputs:
    limited = limit(case.desired, case.current, case.bounds, case.behavior, case.past, EPOCH)
    return {
        "effectiveBehavior": _effective(case),
        "limited": _limited(limited),
        **_rates(limited, case.desired, case),
    }


def _rules(case: Given) -> Outputs:
    return {"limited": _limited(limit(case.desired, case.current, case.bounds, None, case.past, EPOCH))}


def _store_event(case: Given) -> Outputs:
    return _events_after(remember_rescale(case.past, case.behavior, case.current, case.desired, EPOCH))


_RUNS: Mapping[str, Callable[[Given], Outputs]] = {
    "noBehavior": _no_behavior,
    "withBehavior": _with_behavior,
    "stabilize": _stabilize,
    "stabilizeWithBehavior": _stabilize_with_behavior,
    "rate": _rate,
    "rules": _rules,
    "storeEvent": _store_event,
}


def _steady(case: Given) -> tuple[Stabilized, tuple[Recommendation, ...]]:
    steadied = stabilize(case.desired, case.current, case.past.recommendations, case.behavior, case.settings, EPOCH)
    return steadied.step, steadied.remembered


def _told(stabilized: Stabilized, case: Given) -> Outputs:
    """Give the words upstream has ready, whether or not they apply."""
    ready = conditions.HELD_DOWN if case.desired >= case.current else conditions.HELD_UP
    return {"replicas": stabilized.replicas, "reason": ready.reason, "message": ready.message}


def _limited(limited: Limited) -> Outputs:
    finding = conditions.LIMITED[limited.limit]
    return {"replicas": limited.replicas, "reason": finding.reason, "message": finding.message}


def _rates(limited: Limited, steady: int, case: Given) -> Outputs:
    if steady == case.current:
        return {}
    return {"scaleUpLimit" if steady > case.current else "scaleDownLimit": limited.rate}


def _conditions(stabilized: Stabilized, limited: Limited) -> Outputs:
    return {
        "ableToScale": _condition(conditions.stability(stabilized)),
        "scalingLimited": _condition(conditions.LIMITED[limited.limit]),
    }


def _condition(finding: Finding) -> Outputs:
    return {"status": finding.status, "reason": finding.reason, "message": finding.message}


def _effective(case: Given) -> object:
    """Print the behavior with the cluster's window filled in, unless the case says it is as it should be."""
    behavior = case.behavior
    if behavior is not None and behavior.scale_down is not None and not case.is_final:
        _, down = windows(behavior, case.settings)
        filled = replace(behavior.scale_down, stabilization_window_seconds=int(down.total_seconds()))
        behavior = replace(behavior, scale_down=filled)
    return encode_spec(Spec(behavior=behavior)).get("behavior")


def _ago(one: Json) -> datetime:
    return EPOCH - timedelta(seconds=one["age"])


def _events(given: Sequence[Json]) -> tuple[ScaleEvent, ...]:
    return tuple(ScaleEvent(one["change"], _ago(one), one.get("outdated", False)) for one in given)


def _age(at: datetime) -> int:
    return round((EPOCH - at).total_seconds())


def _recommendations(remembered: Sequence[Recommendation]) -> list[Outputs]:
    return [{"replicas": one.replicas, "age": _age(one.at)} for one in remembered]


def _events_after(past: History) -> Outputs:
    return {"scaleUpEventsAfter": _printed(past.scale_ups), "scaleDownEventsAfter": _printed(past.scale_downs)}


def _printed(events: Sequence[ScaleEvent]) -> list[Outputs]:
    return [{"change": one.change, "age": _age(one.at), "outdated": one.outdated} for one in events]

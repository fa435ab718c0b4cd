"""The replicas that each target must have after all faults have ended and nothing changes any more."""

from collections.abc import Mapping

from autoscaler.algorithm.calculate import from_average
from autoscaler.settings import Settings
from autoscaler.types.metric_result import Tolerance
from tests.faults.random_run.invariants import Violation, bounds_of, is_active
from tests.faults.random_run.record import Record, ScaleWrite, SpecHistory, SpecWrite, TargetWrite, owners_of

_TOLERANCE = Tolerance(down=Settings().tolerance, up=Settings().tolerance)


def not_converged(
    record: Record, replicas: Mapping[str, int], metrics: Mapping[str, int | None], now: float, age: float
) -> list[Violation]:
    """Return the targets whose replicas are not those that their autoscaler demands.

    ``replicas`` are those of all existing targets; a metric is None if it cannot be read; ``age`` is the
    maximum age of watched objects.
    """
    history = SpecHistory(record.writes)
    violations = []
    for target, actual in replicas.items():
        owners = owners_of(target, history.at(now))
        if len(owners) != 1:
            continue
        if not is_active(owners[0], now):
            if (owners[0].spec or {}).get("pausedUntil"):
                violations.append(Violation(now, "convergence", f"the pause of {target} has not ended: {owners[0]}"))
            continue
        if actual == 0 and not _is_own_zero(record, history, owners[0], age):
            continue  # a zero of another client disables scaling
        expected = expected_replicas(owners[0], metrics.get(metric_of(owners[0])), actual)
        if actual != expected:
            text = f"{target} has {actual} replicas instead of {expected}: {metrics}, {owners[0]}"
            violations.append(Violation(now, "convergence", text))
    return violations


def expected_replicas(autoscaler: SpecWrite, value: int | None, actual: int) -> int:
    """Return the replicas that an autoscaler demands if its metric stays the same, by the algorithm's own function."""
    low, high = bounds_of(autoscaler)
    external = (autoscaler.spec or {})["metrics"][0]["external"]
    average = int(external["target"]["averageValue"])
    if value is None:
        fallback = external.get("fallback")
        wanted = actual if fallback is None else fallback["replicas"]
        return actual if wanted == 0 else max(low, min(wanted, high))
    wanted = from_average(value, average, actual, _TOLERANCE, caps_overflow=True).replicas
    return max(low, min(wanted, high))


def metric_of(autoscaler: SpecWrite) -> str:
    """Return the name of the only metric of an autoscaler."""
    return str((autoscaler.spec or {})["metrics"][0]["external"]["metric"]["name"])


def _is_own_zero(record: Record, history: SpecHistory, owner: SpecWrite, age: float) -> bool:
    """Return whether a target was scaled to zero for the same autoscaler that it has now."""
    resizes = (one for one in reversed(record.writes) if isinstance(one, ScaleWrite | TargetWrite))
    last = next((one for one in resizes if one.target == owner.target), None)
    if not isinstance(last, ScaleWrite):
        return False
    states = history.owners_within(owner.target, last.at - age, last.at)
    return all(spec.uid == owner.uid for _, state in states for spec in state)

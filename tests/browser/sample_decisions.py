"""Sample decisions for the page: autoscalers in every state, each computed by ``decide`` from a series of readings."""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from adapter.debug.decision_log import DecisionLog
from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.decision import Decision
from autoscaler.types.observation import FailureClass, Reading, UnavailableReading, UnavailableTarget
from autoscaler.types.spec import ObjectReference, Policy, Spec
from tests.builders import (
    NO_STABILIZATION,
    ReconcileInput,
    decide_once,
    external_reading,
    later,
    make_autoscaler,
    make_behavior,
    make_external_metric,
    make_fallback,
    make_observation,
    make_resource_metric,
    make_rules,
    make_spec,
    pod_reading,
    run_reconciles,
    unavailable_reading,
)

INTERVAL = 15
LENGTH = 2700
END = later(LENGTH)
HOSTILE = "<script>alert(1)</script>"
OUTAGE = unavailable_reading(
    "unable to fetch metrics from external metrics API: metric 'orders_waiting': prometheus: unreachable:"
    " connection refused",
    FailureClass.UNREACHABLE,
)


def add_samples(log: DecisionLog) -> None:
    """Add all sample autoscalers to the log."""
    add_orders(log)
    add_states(log)


def add_orders(log: DecisionLog) -> None:
    """Add an autoscaler with a rush, an outage, a fallback and a recovery."""
    metric = make_external_metric("orders_waiting", average="30", fallback=make_fallback(12, 180, "UseMax"))
    up, down = make_rules(Policy("Pods", 4, 60)), make_rules(Policy("Percent", 50, 60), window=300)
    spec = make_spec(metric, minimum=2, maximum=24, behavior=make_behavior(up=up, down=down))
    inputs = [ReconcileInput(after, (_orders_at(after),)) for after in range(0, LENGTH + 1, INTERVAL)]
    _add(log, "shop/orders", spec, run_reconciles(spec, inputs, replicas=3))


def _orders_at(after: float) -> Reading:
    if 1320 <= after < 1830:
        return OUTAGE
    rush = 430 * math.exp(-(((after - 1200) / 420) ** 2))
    return external_reading(round(80 + rush + 12 * math.sin(after / 47) + 9 * math.sin(after / 19), 1))


def add_states(log: DecisionLog) -> None:
    """Add an autoscaler in each state."""
    queue = make_external_metric("mails_waiting", average="10", fallback=make_fallback(6, 180))
    cpu = make_resource_metric(utilization=60)
    outage: list[Reading] = [unavailable_reading()] * 5
    to_zero = make_spec(queue, minimum=0, behavior=NO_STABILIZATION)
    paused = make_spec(queue, mode="Paused", paused_until=later(LENGTH + 900))
    not_found = UnavailableTarget('deployments "etl" not found')
    _run(log, "shop/mails", make_spec(queue), [*[external_reading(40)] * 8, *outage * 4])
    _run(log, "shop/search", make_spec(queue), [*[external_reading(40)] * 20, *outage])
    _run(log, "shop/web", make_spec(queue, cpu, maximum=30), [external_reading(31)] * 9, second=pod_reading(*[600] * 3))
    _run(log, "shop/checkout", make_spec(queue, maximum=5), [external_reading(90)] * 20)
    _run(log, "night/reports", to_zero, [external_reading(20)] * 6 + [external_reading(0)] * 6)
    _run(log, "night/import", make_spec(queue), [external_reading(20)] * 3, replicas=0)
    _run(log, "data/etl", make_spec(queue, mode="DryRun"), [external_reading(90)] * 3)
    _run(log, "data/train", paused, [external_reading(90)] * 3)
    _run(log, "data/deleted", make_spec(queue), [external_reading(30)] * 2, target=not_found)
    _run(log, "data/pods", make_spec(cpu), [pod_reading()] * 3)
    conflict = replace(make_observation(), conflicts=("HorizontalPodAutoscaler/shop/cart",))
    _add(log, "shop/cart", make_spec(), [decide_once(make_spec(), conflict, now=END)])
    hostile = make_external_metric(f'{HOSTILE}<img src=x onerror="alert(2)">', average="10")
    _run(log, "odd/hostile", make_spec(hostile), [unavailable_reading(f"unknown metric {HOSTILE}")] * 3)


def _run(
    log: DecisionLog,
    key: str,
    spec: Spec,
    readings: Iterable[Reading],
    *,
    second: Reading | None = None,
    replicas: int = 3,
    target: UnavailableTarget | None = None,
) -> None:
    rows = [(reading,) if second is None else (reading, second) for reading in readings]
    start = LENGTH - INTERVAL * (len(rows) - 1)
    inputs = [
        ReconcileInput(start + INTERVAL * index, row, target=target if index else None)
        for index, row in enumerate(rows)
    ]
    _add(log, key, spec, run_reconciles(spec, inputs, replicas=replicas))


def _add(log: DecisionLog, key: str, spec: Spec, decisions: Iterable[Decision]) -> None:
    for decision in decisions:
        log.on_decision(key, _autoscaler(key, spec), decision)


def _autoscaler(key: str, spec: Spec) -> Autoscaler:
    namespace, _, name = key.partition("/")
    named = replace(spec, scale_target_ref=ObjectReference("Deployment", name, "apps/v1"))
    return replace(make_autoscaler(named), metadata=Metadata(name, namespace, uid=key))


def reconcile_again(log: DecisionLog, key: str, *readings: Reading | UnavailableReading, now: datetime) -> Decision:
    """Reconcile an autoscaler once more and add the decision to the log, as the controller does."""
    entry = log.get(key)
    assert entry is not None
    autoscaler = replace(entry.autoscaler, status=entry.decision.status)
    (decision,) = run_reconciles(
        autoscaler.spec,
        [ReconcileInput((now - END) / timedelta(seconds=1) + LENGTH, readings)],
        replicas=entry.decision.replicas,
        status=autoscaler.status,
        history=entry.decision.history,
    )
    log.on_decision(key, autoscaler, decision)
    return decision

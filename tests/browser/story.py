"""What the page is shown: every state there is, each made by ``decide`` from a small story, none of it invented."""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from adapter.debug.decision_log import Shelf
from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.decision import Decision
from autoscaler.types.observation import Observation, Reading, TargetUnreadable, UnavailableReading
from autoscaler.types.spec import ObjectReference, Policy, Spec
from tests.builders import (
    AT_ONCE,
    Step,
    decide_once,
    later,
    make_autoscaler,
    make_behavior,
    make_external_metric,
    make_fallback,
    make_observation,
    make_resource_metric,
    make_rules,
    make_spec,
    pods_say,
    queue_of,
    run_passes,
    unreadable,
)

EVERY = 15
LENGTH = 2700
END = later(LENGTH)
HOSTILE = "<script>alert(1)</script>"
REFUSED = unreadable("metric 'orders_waiting' could not be read: prometheus: refused: connection refused")


def told(shelf: Shelf) -> None:
    """Put everything on the shelf."""
    orders(shelf)
    states(shelf)


def orders(shelf: Shelf) -> list[Decision]:
    """Tell of a rush, an outage, a fallback, a recovery, and the calm after it."""
    metric = make_external_metric("orders_waiting", average="30", fallback=make_fallback(12, 180, "UseMax"))
    calm = make_behavior(up=make_rules(Policy("Pods", 4, 60)), down=make_rules(Policy("Percent", 50, 60), window=300))
    spec = make_spec(metric, minimum=2, maximum=24, behavior=calm)
    steps = [Step(after, (_orders_at(after),)) for after in range(0, LENGTH + 1, EVERY)]
    decisions = run_passes(spec, steps, replicas=3)
    _keep(shelf, "shop/orders", spec, decisions)
    return decisions


def _orders_at(after: float) -> Reading:
    if 1320 <= after < 1830:
        return REFUSED
    rush = 430 * math.exp(-(((after - 1200) / 420) ** 2))
    return queue_of(round(80 + rush + 12 * math.sin(after / 47) + 9 * math.sin(after / 19), 1))


def states(shelf: Shelf) -> None:
    """Put one autoscaler of every state on the shelf."""
    queue = make_external_metric("mails_waiting", average="10", fallback=make_fallback(6, 180))
    cpu = make_resource_metric(utilization=60)
    down = [unreadable()] * 5
    _run(shelf, "shop/mails", make_spec(queue), [queue_of(40)] * 8 + down * 4)
    _run(shelf, "shop/search", make_spec(queue), [queue_of(40)] * 20 + down)
    _run(shelf, "shop/web", make_spec(queue, cpu, maximum=30), [queue_of(31)] * 9, also=pods_say(*[600] * 3))
    _run(shelf, "shop/checkout", make_spec(queue, maximum=5), [queue_of(90)] * 20)
    _run(shelf, "night/reports", make_spec(queue, minimum=0, behavior=AT_ONCE), [queue_of(20)] * 6 + [queue_of(0)] * 6)
    _run(shelf, "night/import", make_spec(queue), [queue_of(20)] * 3, replicas=0)
    _run(shelf, "data/etl", make_spec(queue, mode="DryRun"), [queue_of(90)] * 3)
    _run(shelf, "data/train", make_spec(queue, mode="Paused", paused_until=later(LENGTH + 900)), [queue_of(90)] * 3)
    _run(
        shelf, "data/lost", make_spec(queue), [queue_of(30)] * 2, target=TargetUnreadable('deployments "etl" not found')
    )
    _run(shelf, "data/pods", make_spec(cpu), [pods_say()] * 3)
    rivals = replace(make_observation(), rivals=("HorizontalPodAutoscaler/shop/cart",))
    _one(shelf, "shop/cart", make_spec(), rivals)
    strange = make_external_metric(f'{HOSTILE}<img src=x onerror="alert(2)">', average="10")
    _run(shelf, "odd/hostile", make_spec(strange), [unreadable(f"no such thing as {HOSTILE}")] * 3)


def _run(
    shelf: Shelf,
    key: str,
    spec: Spec,
    readings: Iterable[Reading],
    *,
    also: Reading | None = None,
    replicas: int = 3,
    target: TargetUnreadable | None = None,
) -> None:
    rows = [(one,) if also is None else (one, also) for one in readings]
    begin = LENGTH - EVERY * (len(rows) - 1)
    steps = [Step(begin + EVERY * index, row, target=target if index else None) for index, row in enumerate(rows)]
    _keep(shelf, key, spec, run_passes(spec, steps, replicas=replicas))


def _one(shelf: Shelf, key: str, spec: Spec, seen: Observation) -> None:
    _keep(shelf, key, spec, [decide_once(spec, seen, now=END)])


def _keep(shelf: Shelf, key: str, spec: Spec, decisions: Iterable[Decision]) -> None:
    for decision in decisions:
        shelf.decided(key, known_as(key, spec), decision)


def known_as(key: str, spec: Spec) -> Autoscaler:
    namespace, _, name = key.partition("/")
    aimed = replace(spec, scale_target_ref=ObjectReference("Deployment", name, "apps/v1"))
    return replace(make_autoscaler(aimed), metadata=Metadata(name, namespace, uid=key))


def passes_on(shelf: Shelf, key: str, *readings: Reading | UnavailableReading, at: datetime) -> Decision:
    """Let one more pass be made over an autoscaler, as the controller would."""
    kept = shelf.get(key)
    assert kept is not None
    autoscaler = replace(kept.autoscaler, status=kept.decision.status)
    after = (at - END) / timedelta(seconds=1) + LENGTH
    size = kept.decision.replicas
    (decision,) = run_passes(
        autoscaler.spec, [Step(after, readings)], replicas=size, status=autoscaler.status, past=kept.decision.history
    )
    shelf.decided(key, autoscaler, decision)
    return decision

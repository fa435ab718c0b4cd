"""The narration: each change between decisions is printed once."""

from datetime import UTC, datetime, timedelta

import pytest

from adapter.demo.narrator import WIDTH, ChangeKind, Narrator, changes, table
from adapter.demo.order_queue import QueueState
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.metric_result import Calculation, CalculationRule, Tolerance, UnavailableCause
from autoscaler.types.status import Status
from autoscaler.types.steps import MetricFallbackStep, MetricProposalStep, MetricUnavailableStep, Step

NOW = datetime(2026, 1, 2, 8, 3, tzinfo=UTC)
DUE = NOW + timedelta(minutes=3)
UNAVAILABLE = MetricUnavailableStep("queue", "rejected", UnavailableCause.RETRIEVAL, None, NOW, DUE, 16)
FALLBACK = MetricFallbackStep("queue", 16, "rejected", NOW - timedelta(minutes=3), "Static", 16, 9)


def proposal(replicas: int, current: int = 1) -> MetricProposalStep:
    calculation = Calculation(replicas, CalculationRule.TOTAL, usage=16000, target=8000, ratio=2.0)
    return MetricProposalStep("queue", replicas, current, Tolerance(0.1, 0.1), calculation)


def decision(*steps: Step, current: int = 1, to: int | None = None) -> Decision:
    return Decision(
        at=NOW,
        replicas=current if to is None else to,
        scale_to=to,
        status=Status(current_replicas=current),
        status_changed=False,
        history=History(),
        steps=steps,
    )


@pytest.mark.parametrize(
    ("current", "to", "kind", "reason"),
    [
        (1, 4, ChangeKind.SCALED_UP, "16 orders per consumer, target 8"),
        (4, 1, ChangeKind.SCALED_DOWN, "16 orders per consumer, target 8"),
        (1, 0, ChangeKind.SCALED_TO_ZERO, "16 orders per consumer, target 8"),
        (0, 1, ChangeKind.SCALED_FROM_ZERO, "there are orders but no consumers"),
    ],
)
def test_rescale_has_direction_and_reason(current: int, to: int, kind: ChangeKind, reason: str):
    (change,) = changes(None, decision(proposal(to, current), current=current, to=to))

    assert (change.kind, change.current, change.replicas, change.reason) == (kind, current, to, reason)


def test_failing_metric_is_reported_once_with_the_time_of_the_fallback():
    failing = decision(UNAVAILABLE, current=9)

    (change,) = changes(decision(proposal(9)), failing)

    assert change.kind is ChangeKind.METRIC_FAILING
    assert change.reason == "queue is unavailable; fallback to 16 replicas at 08:06:00"
    assert list(changes(failing, failing)) == []


def test_fallback_is_reported_with_the_rescale_that_it_causes():
    found = list(changes(decision(UNAVAILABLE, current=9), decision(FALLBACK, current=9, to=16)))

    assert [(change.kind, change.current, change.replicas) for change in found] == [
        (ChangeKind.FALLBACK, 9, 9),
        (ChangeKind.SCALED_UP, 9, 16),
    ]
    assert [change.reason for change in found] == ["queue has been unavailable for 180 s", "fallback of 16 replicas"]


def test_recovery_is_reported():
    (change,) = changes(decision(FALLBACK, current=16), decision(proposal(16, 16), current=16))

    assert change.kind is ChangeKind.METRIC_RECOVERED


def test_equal_decisions_have_no_changes():
    assert list(changes(decision(proposal(1)), decision(proposal(1)))) == []


def test_table_has_a_row_for_each_change_and_fits_the_width():
    rows = table([*changes(None, decision(proposal(4), to=4)), *changes(None, decision(UNAVAILABLE))]).splitlines()

    assert rows[1].split()[:6] == ["08:03:00", "1", "→", "4", "scaled", "up"]
    assert max(map(len, rows)) <= WIDTH


def test_narrator_prints_changes_of_each_autoscaler_and_the_queue():
    written: list[str] = []
    narrator = Narrator(written.append, lambda: NOW)

    narrator.on_decision("shop/a", Autoscaler(), decision(UNAVAILABLE))
    narrator.on_decision("shop/b", Autoscaler(), decision(UNAVAILABLE))
    narrator.on_decision("shop/a", Autoscaler(), decision(UNAVAILABLE))
    narrator.report_queue(QueueState(waiting=1), 2, is_measured=False)

    assert [change.kind for change in narrator.day] == [ChangeKind.METRIC_FAILING, ChangeKind.METRIC_FAILING]
    assert written[-1] == "08:03:00    queue: 1 order (unknown to the autoscaler), 2 consumers\n"
    assert max(len(line) for text in written for line in text.splitlines()) <= WIDTH

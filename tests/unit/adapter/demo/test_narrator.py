"""The story in words: what is new in a decision is told once, and nothing is told that is not in it."""

from datetime import UTC, datetime, timedelta

import pytest

from adapter.demo.narrator import Narrator, What, happenings, table
from adapter.demo.order_queue import Queue
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.metric_result import Calculation, Rule, Tolerance, Trouble
from autoscaler.types.status import Status
from autoscaler.types.steps import MetricAnswered, MetricFailed, MetricFellBack, Step

NOW = datetime(2026, 1, 2, 8, 3, tzinfo=UTC)
FAILED = MetricFailed("queue", "refused", Trouble.RETRIEVAL, None, NOW, NOW + timedelta(minutes=3), 16)
FELL_BACK = MetricFellBack("queue", 16, "refused", NOW - timedelta(minutes=3), "Static", 16, 9)


def answered(replicas: int, current: int = 1) -> MetricAnswered:
    calculation = Calculation(replicas, Rule.TOTAL, usage=16000, target=8000, ratio=2.0)
    return MetricAnswered("queue", replicas, current, Tolerance(0.1, 0.1), calculation)


def decision(*working: Step, current: int = 1, to: int | None = None) -> Decision:
    return Decision(
        at=NOW,
        replicas=current if to is None else to,
        scale_to=to,
        status=Status(current_replicas=current),
        status_changed=False,
        history=History(),
        working=working,
    )


@pytest.mark.parametrize(
    ("was", "to", "what"),
    [(1, 4, What.GREW), (4, 1, What.SHRANK), (1, 0, What.TO_ZERO), (0, 1, What.WOKE)],
)
def test_a_rescale_is_told_by_its_direction(was, to, what):
    (told,) = happenings(None, decision(answered(to, was), current=was, to=to))

    assert (told.what, told.was, told.replicas) == (what, was, to)
    assert f"asks for {to}" in told.says


def test_a_metric_that_fails_is_told_once_with_when_its_fallback_is_due():
    fails = decision(FAILED, current=9)

    (told,) = happenings(decision(answered(9)), fails)

    assert told.what is What.FAILING
    assert "does not move from 9" in told.says
    assert "08:06:00" in told.says
    assert list(happenings(fails, fails)) == []


def test_a_fallback_is_told_together_with_the_rescale_that_it_causes():
    told = list(happenings(decision(FAILED, current=9), decision(FELL_BACK, current=9, to=16)))

    assert [(each.what, each.was, each.replicas) for each in told] == [(What.FELL_BACK, 9, 9), (What.GREW, 9, 16)]
    assert "unreadable for 180 s" in told[0].says


def test_a_recovery_is_told():
    (told,) = happenings(decision(FELL_BACK, current=16), decision(answered(16, 16), current=16))

    assert told.what is What.RECOVERED


def test_nothing_new_is_nothing_told():
    assert list(happenings(decision(answered(1)), decision(answered(1)))) == []


def test_the_table_has_a_line_for_each_happening():
    told = list(happenings(None, decision(answered(4), to=4)))

    assert table(told).splitlines()[1].split()[:5] == ["08:03:00", "1", "→", "4", "grew"]


def test_the_narrator_tells_each_autoscaler_apart_and_the_unseen_queue_as_such():
    written: list[str] = []
    narrator = Narrator(written.append, lambda: NOW)

    narrator.decided("shop/a", Autoscaler(), decision(FAILED))
    narrator.decided("shop/b", Autoscaler(), decision(FAILED))
    narrator.decided("shop/a", Autoscaler(), decision(FAILED))
    narrator.pulse(Queue(waiting=1), 2, is_seen=False)

    assert [each.what for each in narrator.day] == [What.FAILING, What.FAILING]
    assert "1 order in the queue (which nobody can see), 2 consumers" in written[-2]

"""The text output of ``steadyscale history``."""

from adapter.debug.render import NO_COLORS
from adapter.debug.render_history import period_lines

PERIOD = {
    "namespace": "shop",
    "name": "orders",
    "since": "2026-03-01T02:00:00.000Z",
    "until": "2026-03-01T04:00:00.000Z",
    "beginsAt": "2026-03-01T00:00:00.000Z",
    "truncated": False,
    "gaps": [],
    "records": [],
}


def lines(**parts: object) -> list[str]:
    return list(period_lines({**PERIOD, **parts}, NO_COLORS))[2:]


def record(time: str, reason: str) -> dict[str, object]:
    decision = {"current": 3, "replicas": 3, "state": "normal", "limitingFactor": None, "reason": reason}
    return {"at": f"2026-03-01T{time}.000Z", "deleted": False, "omitted": 0, **decision}


def test_period_with_gaps_and_without_a_decision_says_so():
    gap = {"start": "2026-03-01T03:00:00.000Z", "end": "2026-03-01T03:00:20.000Z", "reason": "there was no leader"}

    assert lines(gaps=[gap]) == [
        "2026-03-01 03:00:00  nothing recorded until 2026-03-01 03:00:20: there was no leader",
        "no decision for this autoscaler in this period",
    ]


def test_consecutive_records_with_the_same_text_share_a_line():
    times = {"03:00:00": "window", "03:00:15": "window", "03:00:30": "window", "03:00:45": "tolerance"}

    assert lines(records=[record(time, reason) for time, reason in times.items()]) == [
        "2026-03-01 03:00:00          3  normal              window (and 2 more records until 2026-03-01 03:00:30)",
        "2026-03-01 03:00:45          3  normal              tolerance",
    ]

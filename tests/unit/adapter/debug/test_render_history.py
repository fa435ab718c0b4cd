"""The text output of ``steadyscale history``."""

from adapter.debug.render import NO_COLORS
from adapter.debug.render_history import period_lines


def test_period_with_gaps_and_without_a_decision_says_so():
    gap = {"start": "2026-03-01T03:00:00.000Z", "end": "2026-03-01T03:00:20.000Z", "reason": "there was no leader"}
    view = {"namespace": "shop", "name": "nothing", "beginsAt": "2026-03-01T00:00:00.000Z", "truncated": False}
    period = {"since": "2026-03-01T02:00:00.000Z", "until": "2026-03-01T04:00:00.000Z", "gaps": [gap], "records": []}

    assert list(period_lines({**view, **period}, NO_COLORS))[2:] == [
        "2026-03-01 03:00:00  nothing recorded until 2026-03-01 03:00:20: there was no leader",
        "no decision for this autoscaler in this period",
    ]

"""Times in the text of ``steadyscale explain``."""

from typing import Any

import pytest

from adapter.debug.render import NO_COLORS, explanation_lines


def view(since: str, may_change_at: str) -> dict[str, Any]:
    return {
        "namespace": "shop",
        "name": "orders",
        "target": "Deployment/orders",
        "states": [{"name": "fallback", "since": since, "detail": "queue: connection refused"}],
        "state": "fallback",
        "current": 3,
        "replicas": 3,
        "decidedAt": "2026-11-17T22:52:31.000Z",
        "limitingFactor": "metric fallback",
        "explanation": {"mayChangeAt": may_change_at, "steps": []},
        "decisiveStep": None,
    }


@pytest.mark.parametrize(
    ("since", "may_change_at", "expected"),
    [
        ("2026-11-17T22:42:05.000Z", "2026-11-17T23:00:00.000Z", ("22:42:05", "23:00:00")),
        ("2026-11-15T22:42:05.000Z", "2026-11-23T08:00:00.000Z", ("2026-11-15 22:42:05", "2026-11-23 08:00:00")),
    ],
    ids=["same day", "other days"],
)
def test_time_on_another_day_than_the_decision_has_a_date(since: str, may_change_at: str, expected: tuple[str, str]):
    lines = list(explanation_lines(view(since, may_change_at), NO_COLORS))
    assert lines[1] == f"fallback since {expected[0]}  queue: connection refused"
    assert lines[4] == f"with unchanged metrics, the next change is possible at {expected[1]} UTC"

"""Traces of upstream's HPA controller through the fold of the simulation: the same decisions, step by step."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from autoscaler.conformance import reconcile
from autoscaler.conformance.inputs import Json
from autoscaler.conformance.reconcile import Replay, status_output
from autoscaler.conformance.report import compare
from autoscaler.simulation.simulation import fold
from autoscaler.types.autoscaler import Autoscaler

TRACES = json.loads((Path(__file__).parents[1] / "vectors" / "reconcile.json").read_text())["traces"]
WRITE_ERRORS = ("statusUpdateError", "scaleUpdateErrors")
"""Keys of steps in which a write fails; in a simulation no write does."""

SIMULATED = [trace for trace in TRACES if not any(key in step for step in trace["steps"] for key in WRITE_ERRORS)]


class FoldedReplay(Replay):
    """A replay whose decisions are those of the simulation."""

    def _reconcile(self, autoscaler: Autoscaler, step: Json) -> dict[str, Any]:
        observation = self._observe(autoscaler, step)
        decision, self._autoscaler = fold(
            autoscaler, observation, self._history, self._settings, self._gates, self._now
        )
        self._history = decision.history
        return {
            "error": decision.error,
            "scaledTo": decision.scale_to,
            "scaleUpdateAttempts": step["expect"].get("scaleUpdateAttempts", []),
            "status": status_output(decision.status) if decision.status_changed else None,
            "events": [to_builtins(event) for event in (*decision.events, *decision.late_events)],
        }


@pytest.mark.parametrize("trace", SIMULATED, ids=lambda trace: trace["id"])
def test_simulation_decides_as_upstream(trace, monkeypatch):
    monkeypatch.setattr(reconcile, "Replay", FoldedReplay)
    expected, got = reconcile.run(trace, {})
    assert list(compare(trace["id"], expected, got)) == []


def test_only_traces_with_failed_writes_are_left_out():
    assert (len(TRACES), len(SIMULATED)) == (233, 222)

"""``steadyscale drill``: the table, the proposal, the patch, and refused input."""

import json
from pathlib import Path

import pytest
import yaml

from adapter.__main__ import main
from tests.unit.adapter.commands.test_simulate import SPEC


@pytest.fixture(autouse=True)
def commands_may_read_files(blocking_calls_fail) -> None:
    blocking_calls_fail.deactivate()


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Return arguments for three days: 30 waiting orders by night, 90 by day."""
    (tmp_path / "orders.yaml").write_text(SPEC)
    rows = (f"{1772323200 + 600 * step},{90 if step % 144 >= 72 else 30}" for step in range(3 * 144))
    (tmp_path / "load.csv").write_text("\n".join(["timestamp,value", *rows]))
    return [str(tmp_path / "orders.yaml"), f"--history={tmp_path / 'load.csv'}", "--period=60s", "--samples=24"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["drill", *arguments]) == 0
    return capsys.readouterr().out


def test_smallest_fallback_that_covers_the_outages_is_proposed(files, capsys):
    text = run(capsys, *files, "--length=2h")
    assert text.startswith("24 outages of 2h, begun throughout 3.0 days\n")
    assert "9 Static covers 100% of outages up to 2h begun at any time in these 3 days (goal 99%)" in text
    patch = yaml.safe_load(text.partition("--patch-file=patch.yaml\n")[2])
    assert patch == [
        {"op": "add", "path": "/spec/metrics/0/external/fallback", "value": {"replicas": 9, "strategy": "Static"}}
    ]


def test_strategy_that_keeps_more_replicas_is_cheaper_if_the_load_only_falls(files, capsys, tmp_path):
    rows = (f"{1772323200 + 600 * step},{90 if step < 20 else 30}" for step in range(72))
    (tmp_path / "load.csv").write_text("\n".join(["timestamp,value", *rows]))
    found = json.loads(run(capsys, *files, "--length=1h", "-o", "json"))
    assert found["patches"]["0.99"][0]["value"] == {"replicas": 3, "strategy": "UseMax"}
    assert found["needsByHourOfWeek"] is None


def test_configured_fallback_is_compared(files, capsys, tmp_path):
    spec = yaml.safe_load(SPEC)
    spec["spec"]["metrics"][0]["external"]["fallback"] = {"replicas": 4, "failureDurationSeconds": 600}
    (tmp_path / "orders.yaml").write_text(yaml.safe_dump(spec))
    text = run(capsys, *files, "--length=2h")
    assert "\n4 Static (configured) " in text
    assert yaml.safe_load(text.partition("--patch-file=patch.yaml\n")[2])[0]["value"]["failureDurationSeconds"] == 600


def test_needs_by_hour_of_week_are_shown_for_two_weeks(files, capsys, tmp_path):
    rows = (f"{1772323200 + 3600 * hour},{90 if hour % 24 >= 12 else 30}" for hour in range(15 * 24))
    (tmp_path / "load.csv").write_text("\n".join(["timestamp,value", *rows]))
    text = run(capsys, *files, "--length=1h", "--period=300s", "--samples=2")
    grid = [line.split() for line in text.splitlines()[-7:]]
    assert grid[0] == ["Mon", *["3"] * 11, *["9"] * 13]  # the outage that begins at 11:xx reaches noon


def test_goal_that_no_fallback_reaches_is_reported(files, capsys, tmp_path):
    spec = yaml.safe_load(SPEC)
    slow = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1800}]}
    spec["spec"]["behavior"] = {"scaleUp": slow}
    (tmp_path / "orders.yaml").write_text(yaml.safe_dump(spec))
    rows = (f"{1772323200 + 600 * step},{90 if step % 6 >= 3 else 30}" for step in range(72))
    (tmp_path / "load.csv").write_text("\n".join(["timestamp,value", *rows]))
    assert "no fallback covers 95% of the outages" in run(capsys, *files, "--length=1h", "--replicas=3")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--length=3m",), "--length: no fallback takes effect in such a short outage"),
        (("--length=30d",), "--length: longer than the history"),
        (("--samples=0",), "--samples: must be between 1 and 2000"),
        (("--length=long",), "--length: 'long' is not a duration"),
    ],
)
def test_problem_is_printed_and_nothing_is_simulated(files, capsys, arguments, message):
    assert main(["drill", *files, *arguments]) == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


def test_spec_without_external_metric_is_refused(files, capsys, tmp_path):
    spec = yaml.safe_load(SPEC)
    target = {"type": "AverageValue", "averageValue": "10"}
    spec["spec"]["metrics"] = [{"type": "Pods", "pods": {"metric": {"name": "waiting"}, "target": target}}]
    (tmp_path / "orders.yaml").write_text(yaml.safe_dump(spec))
    assert main(["drill", *files, "--model=per-pod"]) == 1
    assert "only external metrics have a fallback" in capsys.readouterr().err

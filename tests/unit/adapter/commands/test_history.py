"""``steadyscale history`` and ``steadyscale explain --at`` against the real server on loopback."""

import csv
import io
import json
from pathlib import Path

import pytest

from adapter.__main__ import main
from tests.unit.adapter.commands.test_explain import service

DEBUGGING = Path(__file__).parents[4] / "docs" / "debugging.md"

__all__ = ["service"]  # the fixture


def output(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_moment_is_explained_with_its_steps(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "shop/orders", "--at", "12:24:00", "--server", service]) == 0

    lines = output(capsys).splitlines()
    assert lines[0] == (
        "at 2026-03-01 12:24:00 UTC: no change since 2026-03-01 12:22:00 UTC, the next one at 2026-03-01 12:25:00 UTC"
    )
    assert any(line.startswith("metric failing since 12:22:00") for line in lines)
    assert any("limiting factor: unavailable metrics" in line for line in lines)
    assert any(line.startswith(">") for line in lines)


def test_history_lists_changes_with_their_reasons(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["history", "shop/orders", "--since", "12:00", "--server", service]) == 0

    lines = output(capsys).splitlines()
    assert lines[0].startswith("shop/orders  2026-03-01 12:00:00 to 2026-03-01 12:45:0")
    assert any("metric failing" in line and "12:22:00" in line for line in lines)
    assert any("fallback" in line and "12:25:00" in line for line in lines)
    assert any("→" in line for line in lines)


@pytest.mark.parametrize(
    "command",
    ["explain shop/orders --at 12:24", "history shop/orders --since 12:20 --until 12:31"],
)
def test_output_in_the_documentation_is_current(service: str, capsys: pytest.CaptureFixture[str], command: str):
    assert main([*command.split(), "--server", service]) == 0
    shown = DEBUGGING.read_text().partition(f"$ steadyscale {command}\n")[2].partition("```")[0]
    assert output(capsys) == shown


def test_json_contains_the_steps_of_every_record(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["history", "shop/orders", "--since", "1h", "-o", "json", "--server", service]) == 0

    view = json.loads(output(capsys))
    assert all(record["steps"] for record in view["records"])
    assert view["gaps"] == []


def test_csv_has_the_values_of_each_metric(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["history", "shop/web", "--since", "1h", "-o", "csv", "--server", service]) == 0

    rows = list(csv.DictReader(io.StringIO(output(capsys))))
    assert rows
    assert rows[0]["time"].endswith("Z")
    assert rows[0]["mails_waiting target"] == "10"
    assert float(rows[0]["mails_waiting value"]) > 0


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["explain", "shop/orders", "--at", "11:59"], 1, "nothing is known: the history begins at 2026-03-01 12:00:00"),
        (["explain", "shop/nothing", "--at", "12:30"], 1, "there is no decision for this autoscaler"),
        (["history", "shop/nothing"], 0, "no decision for this autoscaler"),
    ],
)
def test_unknown_moment_or_autoscaler_is_reported(
    service: str, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, text: str
):
    assert main([*arguments, "--server", service]) == code
    assert text in output(capsys)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "shop/orders", "--at", "yesterday"], "at: 'yesterday' is not a time of day such as 03:12 (UTC)"),
        (["explain", "shop/orders", "--at", "2030-01-01"], "at: 2030-01-01 00:00:00 UTC is in the future"),
        (["history", "shop/orders", "--since", "now"], "since: must be before until"),
        (["history", "orders"], "'orders' does not have the form NAMESPACE/NAME"),
    ],
)
def test_invalid_argument_is_reported(
    service: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
):
    assert main([*arguments, "--server", service]) == 2
    assert message in capsys.readouterr().err

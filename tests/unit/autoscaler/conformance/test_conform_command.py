"""The command ``python -m autoscaler conform DIR``."""

import json
import runpy
import sys
from pathlib import Path

import pytest

from autoscaler.__main__ import main

VECTORS = Path(__file__).parents[3] / "vectors"
ONE = {"v": 1, "milliDecimalSI": "1m", "milliBinarySI": "1m", "decimalSI": "1", "binarySI": "1"}


@pytest.fixture
def conform(tmp_path, capsys):
    def run(**files):
        for name, content in files.items():
            (tmp_path / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
        code = main(["conform", str(tmp_path)])
        return code, capsys.readouterr().out.splitlines()

    return run


def test_kind_of_a_file_does_not_depend_on_its_name(conform):
    assert conform(renamed=(VECTORS / "queue.json").read_text(), other={"format": [ONE]}) == (
        0,
        [
            "other.json                    1 passed     0 failed",
            "renamed.json                 24 passed     0 failed",
            "25 passed, 0 failed",
        ],
    )


def test_failed_vector_is_shown_side_by_side(conform):
    document = json.loads((VECTORS / "behavior.json").read_text())
    first = next(case for case in document["cases"] if "limited" in case["expect"])
    right = first["expect"]["limited"]["replicas"]
    first["expect"]["limited"]["replicas"] = 4711

    code, lines = conform(wrong=document | {"cases": [first]})

    assert (code, lines) == (
        1,
        [
            "wrong.json                    0 passed     1 failed",
            f"    {first['id']}",
            "                          Kubernetes  Steadyscale",
            f"        limited.replicas  4711        {right}",
            "0 passed, 1 failed",
        ],
    )


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param(
            {"format": [ONE], "weather": [1]},
            "    not run: 1 cases in unknown section 'weather'",
            id="unknown section",
        ),
        pytest.param("{}}", "    not run: not JSON: Extra data: line 1 column 3 (char 2)", id="invalid JSON"),
        pytest.param({}, "    not run: no section of cases", id="no cases"),
        pytest.param(
            {"format": [{"v": "x"}]},
            "    format 'x'",
            id="case with an exception",
        ),
    ],
)
def test_skipped_or_failed_cases_fail_the_run(conform, content, line):
    code, lines = conform(some=content)

    assert code == 1
    assert line in lines


def test_totals_of_all_files_are_printed_and_one_failure_fails_the_run(conform):
    code, lines = conform(one={"format": [ONE, ONE]}, two={"format": [ONE, ONE | {"binarySI": "2"}]})

    assert (code, lines[-1]) == (1, "3 passed, 1 failed")


def test_empty_directory_fails_the_run(conform, tmp_path):
    assert conform() == (1, [f"no cases found in {tmp_path}", "0 passed, 0 failed"])


def test_path_that_is_not_a_directory_is_rejected(capsys, tmp_path):
    assert main(["conform", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.endswith("is not a directory with vector files (*.json)\n")


def test_command_is_required(capsys):
    with pytest.raises(SystemExit):
        main([])
    assert "COMMAND" in capsys.readouterr().err


def test_command_runs_as_a_module(tmp_path, monkeypatch, capsys):
    (tmp_path / "some.json").write_text(json.dumps({"format": [ONE]}))
    monkeypatch.setattr(sys, "argv", ["autoscaler", "conform", str(tmp_path)])
    monkeypatch.delitem(sys.modules, "autoscaler.__main__")  # runpy warns if the module is already imported

    with pytest.raises(SystemExit) as exited:
        runpy.run_module("autoscaler", run_name="__main__")

    assert exited.value.code == 0
    assert capsys.readouterr().out.endswith("1 passed, 0 failed\n")

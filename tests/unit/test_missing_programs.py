"""The summary of tests that need missing programs."""

import pytest

from tests.missing_programs import missing, summary


def test_summary_has_one_line_per_missing_program_and_other_reason(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CI", raising=False)
    reasons = []
    for program, install in (("etcd", "apt install etcd-server"), ("etcd", "apt install etcd-server"), ("go", "x; y")):
        with pytest.raises(pytest.skip.Exception) as skipped:
            missing(program, install)
        reasons.append(f"Skipped: {skipped.value.msg}")

    assert summary([*reasons, "Skipped: not today"]) == [
        "Skipped: not today: 1 test skipped",
        "etcd not found: 2 tests skipped; apt install etcd-server",
        "go not found: 1 test skipped; x; y",
    ]


def test_missing_program_fails_the_test_in_ci(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match="missing program: etcd; apt install etcd-server"):
        missing("etcd", "apt install etcd-server")

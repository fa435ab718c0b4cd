"""The check of the output of `make test` on a bare machine, and the options that it takes from this machine."""

import pytest

from tools import bare_machine

LINES = [
    "  61.0 s  etcd not found: 12 tests skipped; apt install etcd-server\n",
    "  61.0 s  helm not found: 1 test skipped; make control-plane\n",
]


def test_skips_for_missing_programs_are_accepted():
    assert (
        bare_machine.unexplained_skips([*LINES, "  61.0 s  == 6000 passed, 13 skipped in 401.20s (0:06:41) ==\n"]) == 0
    )


def test_other_skips_fail(capsys: pytest.CaptureFixture[str]):
    assert (
        bare_machine.unexplained_skips([*LINES, "  61.0 s  == 6000 passed, 14 skipped in 401.20s (0:06:41) ==\n"]) == 1
    )
    assert capsys.readouterr().out == "14 tests were skipped, but only 13 of them for missing programs\n"


def test_package_index_and_certificates_are_those_of_this_machine(monkeypatch: pytest.MonkeyPatch):
    listed = ":env:.cert='/ca.crt'\nglobal.index-url='https://index.example/simple'\nglobal.quiet='1'\n"
    monkeypatch.setattr(bare_machine, "_output", lambda *_: listed)
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)

    assert bare_machine.pip_options() == {"cert": "/ca.crt", "index-url": "https://index.example/simple"}

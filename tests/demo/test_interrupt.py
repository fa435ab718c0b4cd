"""Ctrl-C at any stage of the demo, and in `make demo`: no traceback, and no files remain."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import GIVE_UP

ROOT = Path(__file__).parents[2]
STAGES = ["aiohttp", "adapter.app", "adapter.demo.run", "Press Ctrl-C", "Debugging page:", "Quiet morning"]
"""Modules that have been imported, and lines of the output."""

DEFAULT_SIGINT = [
    sys.executable,
    "-Sc",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])",
]
"""Starts a command as a terminal does: a shell starts the processes of a background job with SIGINT ignored."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT), "PYTHONPROFILEIMPORTTIME": "1"}


def interrupted(command: list[str], stage: str, environment: dict[str, str]) -> tuple[int, str]:
    """Send SIGINT to the group of processes, as a terminal does; return the exit code and the output."""
    with subprocess.Popen(  # noqa: S603 - this program
        [*DEFAULT_SIGINT, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith(stage) or line.rpartition("|")[2].strip() == stage or stage in line.partition("  ")[2]:
                break
        os.killpg(process.pid, signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=GIVE_UP)
        finally:
            process.kill()
    shown = [line for line in [*lines, *output.splitlines(keepends=True)] if not line.startswith("import time:")]
    return process.returncode, "".join(shown)


@pytest.mark.parametrize("stage", STAGES)
def test_interrupt_ends_the_demo_without_a_traceback(stage: str, environment: dict[str, str], tmp_path: Path):
    command = [sys.executable, "-m", "adapter", "demo", "--speed=300"]

    code, output = interrupted(command, stage, environment)

    assert "Traceback" not in output
    assert code in {0, 130, -signal.SIGINT}  # a shell shows the last one as 130 as well
    assert list(tmp_path.glob("steadyscale-demo-*")) == []


def test_interrupt_of_make_prints_the_summary_and_at_most_one_line_of_make(environment: dict[str, str], tmp_path: Path):
    (tmp_path / "Makefile").write_text(f"demo:\n\t@{sys.executable} -m adapter demo --speed=300\n")

    _, output = interrupted(["make", "-C", str(tmp_path), "--no-print-directory", "demo"], "Quiet morning", environment)

    assert "Traceback" not in output
    assert "Summary:" in output
    assert len([line for line in output.splitlines() if line.startswith("make")]) <= 1

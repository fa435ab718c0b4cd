"""Run the commands of a page in a folder that looks like a clone of the repository."""

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Block, Step

_AGE = re.compile(r"\b\d+(\.\d+)?(ms|s|m|h|d)\b")
_TIMEOUT = 150
_RUN_SECONDS = 5


class Sandbox:
    """A folder in which the commands of a page are run."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        for entry in ROOT.iterdir():
            if not entry.name.startswith(".") and not (folder / entry.name).exists():
                (folder / entry.name).symlink_to(entry)
        self._programs = folder / ".bin"
        self._programs.mkdir(exist_ok=True)
        path = os.pathsep.join([str(self._programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = {**os.environ, **environment, "PATH": path, "NO_COLOR": "1"}

    def program(self, name: str, text: str) -> None:
        """Add a program that takes precedence over the one on the PATH."""
        file = self._programs / name
        file.write_text(text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def run(self, block: Block) -> None:
        """Write the block if it is a file; run it if it has commands."""
        if block.file:
            file = self._folder / block.file
            file.parent.mkdir(exist_ok=True)
            file.write_text(block.content)
        if block.kind in {"sh", "console"}:
            steps = list(block.steps())
            for step in steps:
                if "runs" in block.qualifiers and step is steps[-1]:
                    self._run_until_stopped(block, step)
                else:
                    self.run_step(block, step, fails="fails" in block.qualifiers and step is steps[-1])

    def _run_until_stopped(self, block: Block, step: Step) -> None:
        """Start a command, check that it keeps running, and stop it."""
        command = ["bash", "-c", f"exec {step.command}"]
        running = subprocess.Popen(  # noqa: S603
            command, cwd=self._folder, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                running.wait(_RUN_SECONDS)
        finally:
            running.terminate()
            running.wait(_TIMEOUT)
        assert running.returncode in {0, -signal.SIGTERM, 128 + signal.SIGTERM}, f"{block}: {step.command}"

    def run_step(self, block: Block, step: Step, *, fails: bool = False) -> None:
        """Run one command of a block and check its exit code and output."""
        done = subprocess.run(  # noqa: S603
            ["bash", "-euo", "pipefail", "-c", step.command],  # noqa: S607
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        output = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"{block}: {step.command}\nexit code {done.returncode}\n{output}"
        lines = [_normalized(line) for line in output.splitlines()]
        missing = [line for line in step.prints if not _is_in(_normalized(line), lines)]
        assert not missing, f"{block}: {step.command}\nnot printed: {missing}\noutput:\n{output}"


def _normalized(line: str) -> str:
    """Replace durations and runs of spaces, which differ between runs."""
    return " ".join(_AGE.sub("#", line).split())


def _is_in(wanted: str, lines: list[str]) -> bool:
    if "..." not in wanted:
        return wanted in lines
    pattern = ".*".join(map(re.escape, wanted.split("...")))
    return any(re.fullmatch(pattern, line) for line in lines)

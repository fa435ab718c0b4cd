"""Types the commands of a page one after another, in a folder that looks like a fresh clone."""

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
_PATIENCE = 150
_A_WHILE = 5


class Sandbox:
    """A folder to type in."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        for thing in ROOT.iterdir():
            if not thing.name.startswith(".") and not (folder / thing.name).exists():
                (folder / thing.name).symlink_to(thing)
        self._programs = folder / ".bin"
        self._programs.mkdir(exist_ok=True)
        path = os.pathsep.join([str(self._programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = {**os.environ, **environment, "PATH": path, "NO_COLOR": "1"}

    def program(self, name: str, text: str) -> None:
        """Put a program in front of the one that the machine has."""
        file = self._programs / name
        file.write_text(text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def take(self, block: Block) -> None:
        """Write the block if it is a file, type it if it is commands."""
        if block.file:
            (self._folder / block.file).write_text(block.content)
        if block.kind in {"sh", "console"}:
            steps = list(block.steps())
            for step in steps:
                if "runs" in block.words and step is steps[-1]:
                    self._run(block, step)
                else:
                    self._type(block, step, fails="fails" in block.words and step is steps[-1])

    def _run(self, block: Block, step: Step) -> None:
        """Start a command that goes on until it is stopped, see that it does, and stop it."""
        command = ["bash", "-c", f"exec {step.command}"]
        running = subprocess.Popen(  # noqa: S603
            command, cwd=self._folder, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                running.wait(_A_WHILE)
        finally:
            running.terminate()
            running.wait(_PATIENCE)
        assert running.returncode in {0, -signal.SIGTERM, 128 + signal.SIGTERM}, f"{block}: {step.command}"

    def _type(self, block: Block, step: Step, *, fails: bool) -> None:
        done = subprocess.run(  # noqa: S603
            ["bash", "-euo", "pipefail", "-c", step.command],  # noqa: S607
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        printed = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"{block}: {step.command}\nexit code {done.returncode}\n{printed}"
        lines = [_likened(line) for line in printed.splitlines()]
        missing = [line for line in step.prints if not _is_among(_likened(line), lines)]
        assert not missing, f"{block}: {step.command}\nnot printed: {missing}\nbut:\n{printed}"


def _likened(line: str) -> str:
    """Make lines alike that differ in how long something took, and in spaces."""
    return " ".join(_AGE.sub("#", line).split())


def _is_among(wanted: str, lines: list[str]) -> bool:
    if "..." not in wanted:
        return wanted in lines
    pattern = ".*".join(map(re.escape, wanted.split("...")))
    return any(re.fullmatch(pattern, line) for line in lines)

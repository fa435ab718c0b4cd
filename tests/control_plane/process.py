"""Starts and stops one program of the control plane, with its log in a file."""

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.waiting import GIVE_UP


class Program:
    """A program that can be stopped and started again."""

    def __init__(self, command: Sequence[str | Path], log: Path, is_ready: Callable[[], bool]) -> None:
        self._command = [str(argument) for argument in command]
        self.is_ready = is_ready
        self._running: subprocess.Popen[bytes] | None = None
        self.log = log

    @property
    def name(self) -> str:
        return Path(self._command[0]).name

    @property
    def pid(self) -> int:
        """The process id; 0 if the program does not run."""
        return self._running.pid if self._running is not None else 0

    @property
    def is_running(self) -> bool:
        return self._running is not None and self._running.poll() is None

    def start(self, *, within: float = GIVE_UP) -> None:
        """Start the program and wait until it is ready."""
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(self._command, stdout=log, stderr=log)  # noqa: S603 - arguments of the tests
        deadline = time.monotonic() + within
        while not self.is_ready():
            if self._running.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"{self.name} did not become ready:\n{self.tail()}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Terminate the program and wait; kill it after a timeout."""
        if self._running is None:
            return
        self._running.terminate()
        try:
            self._running.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()
        self._running = None

    def kill(self) -> None:
        """Kill the program."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()
            self._running = None

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

"""Run the first steps of a new user in a fresh clone: `make demo` until the first rescale, Ctrl-C, `make test`.

    python3 -m tools.newcomer [--no-test]

It uses the last commit, prints the output with times, and removes the clone. The exit code is 1 if a step failed.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIRST_RESCALE = re.compile(r" scaled up, \d+ → \d+")
PAGE = "debugging page:"
LAST_LINES = 12


class Transcript:
    """Prints commands and their output, each line with the seconds since the command was started."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def command(self, command: str) -> None:
        """Print a command and restart the time."""
        self._started = time.monotonic()
        self._print(f"$ {command}")

    def output(self, line: str) -> None:
        """Print a line of output."""
        self._print(f"{time.monotonic() - self._started:6.1f} s  {line}")

    def _print(self, line: str) -> None:
        sys.stdout.write(f"{line.rstrip()}\n")
        sys.stdout.flush()


def main() -> int:
    """Run all steps and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-test", action="store_true", help="run only the demo")
    options = parser.parse_args()
    transcript = Transcript()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "steadyscale"
        transcript.command("git clone … steadyscale && cd steadyscale")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)  # noqa: S603, S607
        codes = [run_demo(clone, transcript)]
        if not options.no_test:
            codes.append(run_tests(clone, transcript))
    return int(any(codes))


def run_demo(clone: Path, transcript: Transcript) -> int:
    """Run `make demo` until the first rescale, then send SIGINT."""
    transcript.command("make demo")
    process = _start(["make", "demo"], clone)
    has_page = has_rescaled = False
    for line in process.stdout or ():
        is_rescale = bool(FIRST_RESCALE.search(line))
        if line.strip() and not has_rescaled:
            transcript.output(line)
        has_page = has_page or PAGE in line
        if is_rescale and not has_rescaled:
            has_rescaled = True
            transcript.output("^C")
            os.killpg(process.pid, signal.SIGINT)
    code = process.wait()
    transcript.output(f"(exit code {code})")
    is_expected = code in {0, 2, 130, -signal.SIGINT}  # the exit code of make after Ctrl-C differs by version
    return int(not (has_page and has_rescaled and is_expected))


def run_tests(clone: Path, transcript: Transcript) -> int:
    """Run `make test` and print its last lines."""
    transcript.command("make test")
    process = _start(["make", "test"], clone)
    output = list(process.stdout or ())
    code = process.wait()
    for line in output[-LAST_LINES:]:
        transcript.output(line)
    transcript.output(f"(exit code {code})")
    return code


def _start(command: list[str], clone: Path) -> "subprocess.Popen[str]":
    environment = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    return subprocess.Popen(  # noqa: S603 - fixed commands
        command,
        cwd=clone,
        env={**environment, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


if __name__ == "__main__":
    sys.exit(main())

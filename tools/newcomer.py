"""Run the first steps of a new user in a fresh clone: `make demo` until the first rescale, Ctrl-C, `make test`.

    python3 -m tools.newcomer [--no-test] [--skipped=FILE]

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
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST_RESCALE = re.compile(r" scaled up, \d+ → \d+")
PAGE = "Debugging page:"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-test", action="store_true", help="run only the demo")
    parser.add_argument("--skipped", type=Path, metavar="FILE", help="write the ids of the skipped tests to a file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "steadyscale"
        print("$ git clone … steadyscale && cd steadyscale", flush=True)
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)  # noqa: S603, S607
        is_failed = run_demo(clone) != 0
        if not options.no_test:
            is_failed |= run_tests(clone, options.skipped) != 0
    return int(is_failed)


def run_demo(clone: Path) -> int:
    """Run `make demo` until the first rescale, then send SIGINT."""
    process, output = _start("make demo", clone)
    has_page = has_rescaled = False
    for line in process.stdout or ():
        if has_rescaled or not line.strip():
            continue
        output(line)
        has_page = has_page or PAGE in line
        if FIRST_RESCALE.search(line):
            has_rescaled = True
            output("^C")
            os.killpg(process.pid, signal.SIGINT)
    code = process.wait()
    output(f"(exit code {code})")
    is_expected = code in {0, 2, 130, -signal.SIGINT}  # the exit code of make after Ctrl-C differs by version
    return int(not (has_page and has_rescaled and is_expected))


def run_tests(clone: Path, skipped: Path | None) -> int:
    """Run `make test`."""
    process, output = _start(f"make test SKIPPED={skipped.resolve()}" if skipped else "make test", clone)
    for line in process.stdout or ():
        output(line)
    code = process.wait()
    output(f"(exit code {code})")
    return code


def _start(command: str, clone: Path) -> tuple["subprocess.Popen[str]", Callable[[str], None]]:
    """Start a command; return the process, and a function that prints a line with the seconds since the start."""
    print(f"$ {command}", flush=True)
    started = time.monotonic()
    environment = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    process = subprocess.Popen(  # noqa: S603 - fixed commands
        command.split(),
        cwd=clone,
        env={**environment, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    return process, lambda line: print(f"{time.monotonic() - started:6.1f} s  {line.rstrip()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

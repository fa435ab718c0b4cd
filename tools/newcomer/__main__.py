"""Play a newcomer: a fresh clone, `make demo` to the first rescale, Ctrl-C, `make test`; print all of it with times.

    python3 -m tools.newcomer [--no-test]

Nothing of this tree but its last commit is used, and nothing is left behind. It ends with 1 if something did.
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
FIRST_RESCALE = re.compile(r" grew: \d+ → \d+")
THE_PAGE = "the page:"
LAST_LINES = 12


class Transcript:
    """What was typed and what came of it, each line with the seconds since the command above it."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def type(self, command: str) -> None:
        """Write down a command."""
        self._began = time.monotonic()
        self.say(f"$ {command}", stamped=False)

    def say(self, line: str, *, stamped: bool = True) -> None:
        """Write down a line."""
        stamp = f"{time.monotonic() - self._began:6.1f} s  " if stamped else ""
        sys.stdout.write(f"{stamp}{line.rstrip()}\n")
        sys.stdout.flush()


def main() -> int:
    """Play, and say whether all went well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-test", action="store_true", help="only the demonstration")
    options = parser.parse_args()
    transcript = Transcript()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "steadyscale"
        transcript.type("git clone … steadyscale && cd steadyscale")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)  # noqa: S603, S607
        codes = [demo(clone, transcript)]
        if not options.no_test:
            codes.append(tests(clone, transcript))
    return int(any(codes))


def demo(clone: Path, transcript: Transcript) -> int:
    """Start the demonstration, wait for the first rescale, and press Ctrl-C."""
    transcript.type("make demo")
    running = _started(["make", "demo"], clone)
    has_page = has_rescaled = False
    for line in running.stdout or ():
        is_rescale = bool(FIRST_RESCALE.search(line))
        if line.strip() and not has_rescaled:
            transcript.say(line)
        has_page = has_page or THE_PAGE in line
        if is_rescale and not has_rescaled:
            has_rescaled = True
            transcript.say("^C")
            os.killpg(running.pid, signal.SIGINT)
    code = running.wait()
    transcript.say(f"(ended with {code})")
    ended = code in {0, 2, 130, -signal.SIGINT}  # what make makes of Ctrl-C differs
    return int(not (has_page and has_rescaled and ended))


def tests(clone: Path, transcript: Transcript) -> int:
    """Run the tests, and show how they end."""
    transcript.type("make test")
    running = _started(["make", "test"], clone)
    said = list(running.stdout or ())
    code = running.wait()
    for line in said[-LAST_LINES:]:
        transcript.say(line)
    transcript.say(f"(ended with {code})")
    return code


def _started(command: list[str], clone: Path) -> "subprocess.Popen[str]":
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    return subprocess.Popen(  # noqa: S603 - our own words
        command,
        cwd=clone,
        env={**kept, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


if __name__ == "__main__":
    sys.exit(main())

"""The demonstration as a process of its own, heard line by line, and the cluster in it as anyone can watch it."""

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"


class Play:
    """One run."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "adapter", "demo", *options]
        environment = {**os.environ, "PYTHONWARNINGS": "error::RuntimeWarning,error::ResourceWarning"}
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.lines: list[str] = []
        self.sizes: list[int] = []
        """Every size that the Deployment had, as a watch of the cluster told it."""
        self._threads = [threading.Thread(target=self._hear)]
        self._threads[0].start()

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def until(self, words: str, within: float = 90) -> None:
        """Wait until it says something."""
        deadline = time.monotonic() + within
        while words not in self.text:
            assert self.process.poll() is None, f"it ended before it said {words!r}:\n{self.text}"
            assert time.monotonic() < deadline, f"not within {within:g} s: {words!r}:\n{self.text}"
            time.sleep(0.05)

    def end(self, within: float = 90) -> tuple[int, str]:
        """Wait for its end; give the exit code and what it wrote to standard error."""
        code = self.process.wait(within)
        for thread in self._threads:
            thread.join(10)
        assert self.process.stderr is not None
        return code, self.process.stderr.read()

    def command(self, title: str) -> str:
        """Give the command that it prints under a title."""
        found = re.search(rf"^  {re.escape(title)}:\n    (.+)$", self.text, re.MULTILINE)
        assert found is not None, f"nothing is printed for {title!r}"
        return found[1]

    @property
    def folder(self) -> Path:
        return Path(self.command("the service's log").removeprefix("tail -f ")).parent

    def watch(self) -> None:
        """Follow the Deployment from now on."""
        config = json.loads((self.folder / "kubeconfig").read_text())
        url = f"{config['clusters'][0]['cluster']['server']}{DEPLOYMENTS}?watch=1&timeoutSeconds=36000"
        thread = threading.Thread(target=self._follow, args=(url,))
        self._threads.append(thread)
        thread.start()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(self.process.stdout)

    def _follow(self, url: str) -> None:
        # It ends as the cluster does: with the process.
        with suppress(OSError, ValueError), urllib.request.urlopen(url, timeout=120) as stream:  # noqa: S310 - loopback
            for line in stream:
                size = json.loads(line)["object"]["spec"]["replicas"]
                if self.sizes[-1:] != [size]:
                    self.sizes.append(size)


@contextmanager
def playing(*options: str) -> Iterator[Play]:
    """Run the demonstration for the length of the block, and never longer."""
    play = Play(*options)
    try:
        yield play
    finally:
        if play.process.poll() is None:
            play.process.kill()
        play.process.wait()
        for stream in (play.process.stdout, play.process.stderr):
            assert stream is not None
            stream.close()


def happened(text: str) -> list[dict[str, Any]]:
    """Read the table at the end."""
    _, _, rows = text.partition("What happened, and why:\n")
    form = re.compile(r"  (\d\d:\d\d:\d\d)  (\d+)(?: → (\d+))? +(\w[\w ]*?)  +(.+)")
    found = [row for line in rows.splitlines()[1:] if (row := form.fullmatch(line))]
    return [
        {"at": row[1], "was": int(row[2]), "replicas": int(row[3] or row[2]), "what": row[4], "why": row[5]}
        for row in found
    ]

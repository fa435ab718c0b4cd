"""The demo as a subprocess: its output line by line, and a watch of the Deployment in its cluster."""

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

from tests.waiting import GIVE_UP

DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"


class DemoProcess:
    """A running demo."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "adapter", "demo", *options]
        environment = {**os.environ, "PYTHONWARNINGS": "error::RuntimeWarning,error::ResourceWarning"}
        self.process = subprocess.Popen(  # noqa: S603 - this program
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.lines: list[str] = []
        self.replicas: list[int] = []
        """Every replica count of the Deployment that the watch reported."""
        self._threads = [threading.Thread(target=self._read_output)]
        self._threads[0].start()

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def wait_for(self, text: str, timeout: float = GIVE_UP * 2) -> None:
        """Wait until the output contains a text."""
        deadline = time.monotonic() + timeout
        while text not in self.text:
            assert self.process.poll() is None, f"exited before printing {text!r}:\n{self.text}"
            assert time.monotonic() < deadline, f"not printed within {timeout:g} s: {text!r}:\n{self.text}"
            time.sleep(0.05)

    def wait(self, timeout: float = GIVE_UP * 2) -> tuple[int, str]:
        """Wait for the exit; return the exit code and standard error."""
        code = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(GIVE_UP)
        assert self.process.stderr is not None
        return code, self.process.stderr.read()

    def command(self, title: str) -> str:
        """Return the command that is printed below a title."""
        found = re.search(rf"^# {re.escape(title)}\n((?:.+\\\n)*.+)\n", self.text, re.MULTILINE)
        assert found is not None, f"there is no command for {title!r}"
        return found[1]

    @property
    def page(self) -> str:
        """The address of the debugging page."""
        _, _, after = self.text.partition("Debugging page:\n")
        return after.partition("\n")[0]

    @property
    def folder(self) -> Path:
        return Path(self.command("log of the service").removeprefix("tail -f ")).parent

    def watch(self) -> None:
        """Watch the Deployment from now on."""
        config = json.loads((self.folder / "kubeconfig").read_text())
        url = f"{config['clusters'][0]['cluster']['server']}{DEPLOYMENTS}?watch=1&timeoutSeconds=36000"
        thread = threading.Thread(target=self._watch, args=(url,))
        self._threads.append(thread)
        thread.start()

    def _read_output(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(self.process.stdout)

    def _watch(self, url: str) -> None:
        # The watch ends with the process.
        with suppress(OSError, ValueError), urllib.request.urlopen(url, timeout=120) as stream:  # noqa: S310 - loopback
            for line in stream:
                replicas = json.loads(line)["object"]["spec"]["replicas"]
                if self.replicas[-1:] != [replicas]:
                    self.replicas.append(replicas)


@contextmanager
def running_demo(*options: str) -> Iterator[DemoProcess]:
    """Run the demo while the block runs."""
    demo = DemoProcess(*options)
    try:
        yield demo
    finally:
        if demo.process.poll() is None:
            demo.process.kill()
        demo.process.wait()
        for stream in (demo.process.stdout, demo.process.stderr):
            assert stream is not None
            stream.close()


def summary_rows(text: str) -> list[dict[str, Any]]:
    """Parse the summary table."""
    _, _, table = text.partition("Summary:\n\n")
    unwrapped = re.sub(r"\n {38}", " ", table)
    form = re.compile(r"(\d\d:\d\d:\d\d)  (\d+)(?: → (\d+))? +(\w[\w ]*?)  +(.+)")
    rows = [row for line in unwrapped.splitlines()[1:] if (row := form.fullmatch(line))]
    return [
        {"time": row[1], "current": int(row[2]), "replicas": int(row[3] or row[2]), "change": row[4], "reason": row[5]}
        for row in rows
    ]

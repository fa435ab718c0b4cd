"""The server in a process of its own, with the event loop of ``steadyscale serve``, so that its memory can be measured.

``python -m tests.security.served_process FOLDER`` writes certificates to the folder, prints the port and serves until
its standard input is closed.
"""

import asyncio
import gc
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop

from adapter.config.model import Limits
from adapter.server.listener import listen
from tests.loopback import assemble
from tests.waiting import GIVE_UP


@dataclass(frozen=True)
class ServedProcess:
    """A running process."""

    pid: int
    port: int
    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "serving-ca.crt"

    def memory(self, field: str = "VmRSS") -> float:
        """Return a memory figure of the process in MiB: ``VmRSS`` now, ``VmHWM`` the highest so far."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


@contextmanager
def served_process(folder: Path) -> Iterator[ServedProcess]:
    """Run the server for the length of the block."""
    command = [sys.executable, "-m", "tests.security.served_process", str(folder)]
    with subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield ServedProcess(process.pid, int(process.stdout.readline()), folder)
        finally:
            process.stdin.close()
            process.wait(GIVE_UP)


async def _serve(folder: Path) -> None:
    server, tls, _ = assemble(folder, Limits())
    gc.freeze()
    async with server.serving(listen("127.0.0.1", 0), tls.listener) as port:
        print(port, flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(_serve(Path(sys.argv[1])))

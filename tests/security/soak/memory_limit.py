"""The memory limit of a process: a memory cgroup if the machine permits one, otherwise enforced by polling."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

_MOUNT: Final = Path("/sys/fs/cgroup")
_UNITS: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
MIB: Final = 2**20


def parse_bytes(quantity: str) -> int:
    """Return the bytes of a quantity such as 512Mi."""
    return int(quantity[:-2]) * _UNITS[quantity[-2:]]


class MemoryLimit(Protocol):
    """A limit on the memory of all processes that were started with its command prefix."""

    description: str

    def prefix(self) -> list[str]:
        """Return the command that starts another command under the limit."""

    def used(self, pid: int) -> int:
        """Return the bytes in use that the kernel cannot reclaim."""

    def kills(self) -> int:
        """Return how often the kernel killed a process because of the limit."""


class Cgroup:
    """A memory cgroup, version 1 or 2, below the one of this process, so that outer limits stay in force."""

    def __init__(self, folder: Path, limit: int, version: int) -> None:
        self._folder, self._version = folder, version
        self.description = f"memory cgroup v{version}"
        folder.mkdir()
        self._file("memory.max", "memory.limit_in_bytes").write_text(str(limit))

    def prefix(self) -> list[str]:
        return ["sh", "-c", f'echo $$ >"{self._folder}/cgroup.procs" && exec "$@"', "sh"]

    def used(self, pid: int) -> int:  # noqa: ARG002 - of all processes in the cgroup
        usage = int(self._file("memory.current", "memory.usage_in_bytes").read_text())
        return max(0, usage - self._statistic("inactive_file", "total_inactive_file"))

    def kills(self) -> int:
        events = self._file("memory.events", "memory.oom_control").read_text()
        found = re.search(r"(?m)^oom_kill (\d+)$", events)
        return int(found[1]) if found else 0

    def close(self) -> None:
        self._folder.rmdir()

    def _file(self, second: str, first: str) -> Path:
        return self._folder / (second if self._version == 2 else first)

    def _statistic(self, second: str, first: str) -> int:
        name = second if self._version == 2 else first
        lines = dict(line.split() for line in (self._folder / "memory.stat").read_text().splitlines())
        return int(lines.get(name, 0))


class Polled:
    """A limit that the caller enforces: it compares the resident memory with the limit."""

    description = "resident memory, polled"

    def prefix(self) -> list[str]:
        return []

    def used(self, pid: int) -> int:
        status = Path(f"/proc/{pid}/status").read_text()
        found = re.search(r"(?m)^VmRSS:\s+(\d+) kB$", status)
        return int(found[1]) * 1024 if found else 0

    def kills(self) -> int:
        return 0


@contextmanager
def memory_limit(limit: int) -> Iterator[MemoryLimit]:
    """Create the strictest limit that the machine permits."""
    cgroup = _cgroup(limit)
    if cgroup is None:
        yield Polled()
        return
    try:
        yield cgroup
    finally:
        cgroup.close()


def _cgroup(limit: int) -> Cgroup | None:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        if controllers not in {"memory", ""}:
            continue
        version = 1 if controllers else 2
        folder = (_MOUNT / "memory" if controllers else _MOUNT) / own.lstrip("/") / f"steadyscale-soak-{os.getpid()}"
        try:
            return Cgroup(folder, limit, version)
        except OSError:
            if folder.is_dir():
                folder.rmdir()  # created, but without a memory controller
    return None

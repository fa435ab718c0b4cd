"""CPU time and memory of a process, and values from its /metrics endpoint."""

import os
from pathlib import Path

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def cpu(pid: int) -> float:
    """Return the CPU time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS


def thread_cpu(pid: int) -> float:
    """Return the CPU time of all threads that a process has, in seconds; it is counted in nanoseconds."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def memory(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def series(text: str, name: str) -> list[tuple[str, float]]:
    """Return name with labels, and value, of all series of one metric."""
    lines = (line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} ")))
    return [(line.rsplit(" ", 1)[0], float(line.rsplit(" ", 1)[1])) for line in lines]


def quantile(before: str, after: str, histogram: str, fraction: float, *, with_label: str = "") -> str:
    """Return an upper bound of a quantile of the values that a histogram counted between two scrapes."""
    name = f"{histogram}_bucket"
    old = dict(series(before, name))
    rows = [(labels, value - old.get(labels, 0)) for labels, value in series(after, name) if with_label in labels]
    total = rows[-1][1] if rows else 0
    bound = next((labels.split('le="')[1].split('"')[0] for labels, value in rows if value >= fraction * total), "?")
    return f"<{float(bound):.2g}s" if total and bound != "?" else "?"

"""How a process fares, seen from outside: its processor time, its memory, and what it says at /metrics."""

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu(pid: int) -> float:
    """Say how many seconds of processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def memory(pid: int) -> float:
    """Say how many megabytes a process has in memory."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def figures(text: str, name: str) -> list[tuple[str, float]]:
    """Read all series of one figure."""
    lines = (line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} ")))
    return [(line.rsplit(" ", 1)[0], float(line.rsplit(" ", 1)[1])) for line in lines]


def quantile(before: str, after: str, histogram: str, part: float, *, with_label: str = "") -> str:
    """Say below what a part of all values lies that a histogram took in between two looks at it."""
    name = f"{histogram}_bucket"
    old = dict(figures(before, name))
    rows = [(labels, value - old.get(labels, 0)) for labels, value in figures(after, name) if with_label in labels]
    total = rows[-1][1] if rows else 0
    bound = next((labels.split('le="')[1].split('"')[0] for labels, value in rows if value >= part * total), "?")
    return f"<{float(bound):.2g}s" if total and bound != "?" else "?"

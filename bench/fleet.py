"""A fleet of autoscalers beside a real API server: ours, and Kubernetes' own in the same run, on the same targets.

    python -m bench.fleet [--count 1000] [--seconds 30] [--stock]

Each autoscaler has one external metric and a custom target. First nothing changes, then every fifteen seconds 5 % of
the metrics do, and their targets are rescaled. Per system: looks per second, how late they begin, processor time of the
controller and of the API server for each look (what it uses when idle taken off), requests for each look, memory.

Ours is the whole process as it is installed, server, page and all, reading its own metrics. The built-in reads the same
metrics from the same process through the API server; what that costs us there is not counted against it.
``--count 5000`` is the full size.
"""

import argparse
import ssl
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.fleet_cluster import NATIVE, OURS, Published, create_autoscalers, prepare
from bench.process_stats import cpu, figures, memory, quantile
from tests.control_plane import programs
from tests.control_plane.cluster import ControlPlane, _manager_flags, control_plane, free_port
from tests.control_plane.process import Program
from tests.integration.service import process, until

PERIOD = 15
LOOKS = "horizontal_pod_autoscaler_controller_reconciliations_total"
KNOWN = "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers"
TUNED = "--concurrent-horizontal-pod-autoscaler-syncs=50"


@dataclass(frozen=True)
class System:
    """One that looks after autoscalers: its process, and how its own figures are read."""

    name: str
    program: Program
    read: Callable[[], str]
    late: tuple[str, str]
    """The histogram of how late looks begin, and the label that tells it from others."""

    def looks(self) -> int:
        """Count the looks so far."""
        return self._total(LOOKS)

    def knows(self, count: int) -> bool:
        """Tell whether so many autoscalers have been looked at; some may have been looked at twice by then."""
        return self._total(KNOWN) >= count and self.looks() >= count

    def _total(self, figure: str) -> int:
        return int(sum(value for _, value in figures(self.read(), figure)))


@dataclass
class Row:
    """What one system did in one phase."""

    system: str
    phase: str
    rate: float
    p50: str
    p99: str
    controller_ms: float
    server_ms: float
    requests: float
    megabytes: float

    def __str__(self) -> str:
        return (
            f"{self.system:<22}{self.phase:<10}{self.rate:>8.1f}{self.p50:>10}{self.p99:>10}{self.controller_ms:>10.3f}"
            f"{self.server_ms:>10.3f}{self.requests:>9.2f}{self.megabytes:>8.0f}"
        )


COLUMNS = (
    ("looks/s", 8),
    ("late p50", 10),
    ("late p99", 10),
    ("ctrl ms", 10),
    ("api ms", 10),
    ("req/look", 9),
    ("MB", 8),
)
HEAD = " " * 32 + "".join(f"{name:>{width}}" for name, width in COLUMNS)


def main() -> None:
    """Run it, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--stock", action="store_true", help="also measure the built-in with its default flags")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, control_plane(Path(folder), programs.require()) as plane:
        rows = run(plane, options)
    print(f"{options.count} autoscalers, {PERIOD} s period: {options.count / PERIOD:.1f} looks/s asked for")
    print(HEAD, *rows, sep="\n")
    print(verdict(rows))


def run(plane: ControlPlane, options: argparse.Namespace) -> list[Row]:
    """Set the stage, and let one after the other play on it."""
    count, port = options.count, free_port()
    prepare(plane, count, port)
    serving, numbers = process(plane, port), Published(plane.folder / f"service-{port}.yaml")
    numbers.publish()
    serving.start()
    idle = idle_share(plane)
    create_autoscalers(plane, count, NATIVE)
    rows = []
    for stock in (True, False) if options.stock else (False,):
        rows += Trial(plane, built_in(plane, stock=stock), idle, options).rows(numbers.change)
    serving.stop()
    plane.kubectl("delete", "hpa", "--all", "--namespace=bench", "--wait=false")
    create_autoscalers(plane, count, OURS)
    system = ours(plane, port)
    numbers.publish()
    return rows + Trial(plane, system, idle, options).rows(numbers.change)


@dataclass(frozen=True)
class Trial:
    """One system on the stage."""

    plane: ControlPlane
    system: System
    idle: float
    options: argparse.Namespace

    def rows(self, change: Callable[[], None]) -> list[Row]:
        """Measure it while nothing changes, and while something does."""
        system, count = self.system, self.options.count
        system.program.start()
        try:
            until(lambda: system.knows(count), "all were looked at", within=300)
            time.sleep(2 * PERIOD)  # so that what the first looks found has been written, and all are in their place
            return [self.measured("steady", lambda: None), self.measured("5 %", change)]
        finally:
            system.program.stop()

    def measured(self, phase: str, during: Callable[[], None]) -> Row:
        """Let time pass, and say what it cost."""
        system, pid, server = self.system, self.system.program.pid, self.plane.apiserver.pid
        said, asked, looks = system.read(), requests_of(self.plane), system.looks()
        used, served, began = cpu(pid), cpu(server), time.monotonic()
        while (left := began + self.options.seconds - time.monotonic()) > 0:
            during()
            time.sleep(min(PERIOD, left))
        took, used = time.monotonic() - began, cpu(pid) - used
        served = max(cpu(server) - served - self.idle * took, 0.0)
        says, looks = system.read(), max(system.looks() - looks, 1)
        histogram, label = system.late
        p50, p99 = (quantile(said, says, histogram, part, with_label=label) for part in (0.5, 0.99))
        return Row(
            system.name,
            phase,
            rate=looks / took,
            p50=p50,
            p99=p99,
            controller_ms=used / looks * 1000,
            server_ms=served / looks * 1000,
            requests=max(requests_of(self.plane) - asked - 1, 0) / looks,  # but the one that counts
            megabytes=memory(pid),
        )


def ours(plane: ControlPlane, port: int) -> System:
    """Make ready our own: everything that is installed, in one process."""
    program = process(plane, port, flags=(TUNED,))
    tls = ssl._create_unverified_context()  # noqa: S323, SLF001 - who it is matters to callers, and not to a stopwatch
    plane.kubeconfig("admin")
    tls.load_cert_chain(plane.folder / "admin.crt", plane.folder / "admin.key")
    return System("steadyscale", program, _reader(port, tls), ("steadyscale_autoscaler_reconcile_delay_seconds", ""))


def built_in(plane: ControlPlane, *, stock: bool) -> System:
    """Make ready a controller manager that does nothing but look at HPAs."""
    port = free_port()
    flags = [flag for flag in _manager_flags(plane.folder, port) if "sync-period" not in flag]
    flags += [
        "--controllers=horizontal-pod-autoscaler-controller",
        f"--horizontal-pod-autoscaler-sync-period={PERIOD}s",
    ]
    flags += ["--authorization-always-allow-paths=/healthz,/metrics"]
    if not stock:
        flags += ["--kube-api-qps=5000", "--kube-api-burst=5000", TUNED]
    read = _reader(port, ssl._create_unverified_context())  # noqa: S323, SLF001 - it signs its own
    command = [programs.require()["kube-controller-manager"], *flags]
    program = Program(command, plane.folder / f"manager-{port}.log", lambda: _answers(read))
    name = f"built-in HPA ({'stock' if stock else 'tuned'})"
    return System(name, program, read, ("workqueue_queue_duration_seconds", "horizontalpod"))


def _reader(port: int, tls: ssl.SSLContext) -> Callable[[], str]:
    def read() -> str:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", timeout=30, context=tls) as answer:
            return str(answer.read().decode())

    return read


def _answers(read: Callable[[], str]) -> bool:
    try:
        return bool(read())
    except OSError:
        return False


def requests_of(plane: ControlPlane) -> float:
    """Count the requests that the API server has answered, watches aside."""
    text = plane.kubectl("get", "--raw", "/metrics")
    return sum(value for labels, value in figures(text, "apiserver_request_total") if 'verb="WATCH"' not in labels)


def idle_share(plane: ControlPlane) -> float:
    """Measure how much of a processor the API server uses when nobody asks it anything."""
    time.sleep(5)
    before = cpu(plane.apiserver.pid)
    time.sleep(10)
    return (cpu(plane.apiserver.pid) - before) / 10


def verdict(rows: list[Row]) -> str:
    """Say what ours costs in parts of what the built-in does, each in the same phase."""
    cost = {(row.system, row.phase): row.controller_ms + row.server_ms for row in rows}
    theirs = rows[-3].system
    parts = (f"{phase}: {cost['steadyscale', phase] / cost[theirs, phase]:.2f}" for phase in ("steady", "5 %"))
    return f"processor time for each look, controller and API server, in parts of the {theirs}: {', '.join(parts)}"


if __name__ == "__main__":
    main()

"""Cost of a fleet of autoscalers on a real API server: Steadyscale and the built-in HPA controller in one run.

    python -m bench.fleet [--count 1000] [--seconds 30] [--period 15] [--stock] [--alone]

Each autoscaler has one external metric and a custom resource as its target. In the first phase nothing changes; in the
second, 5 % of the metrics change every period and their targets are rescaled. Printed per system and phase: reconciles
per second, reconcile delay, CPU time of the controller and of the API server per reconcile (without the idle load of
the API server), API requests per reconcile, and memory.

Steadyscale runs as it is installed, with server and page, and reads its own metrics in process. The built-in controller
reads the same metrics from the same process through the API server; that process's CPU time is not counted.
``--count 5000`` is the full size. ``--count 20000 --alone`` measures Steadyscale only.
"""

import argparse
import ssl
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.fleet_cluster import HPA, POD_AUTOSCALER, StaticMetrics, create_autoscalers, prepare
from bench.process_stats import cpu, memory, quantile, series
from tests.control_plane import programs
from tests.control_plane.cluster import ControlPlane, _manager_flags, control_plane, free_port
from tests.control_plane.process import Program
from tests.integration.service import process, until

RECONCILES = "horizontal_pod_autoscaler_controller_reconciliations_total"
AUTOSCALERS = "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers"
CONCURRENT_SYNCS = "--concurrent-horizontal-pod-autoscaler-syncs=50"


@dataclass(frozen=True)
class System:
    """One controller under test: its process, and how its metrics are read."""

    name: str
    program: Program
    read: Callable[[], str]
    delay: tuple[str, str]
    """The histogram of the reconcile delay, and the label that selects the right series."""

    def reconciles(self) -> int:
        return self._total(RECONCILES)

    def has_reconciled(self, count: int) -> bool:
        """Return whether the controller knows ``count`` autoscalers and has done at least as many reconciles."""
        return self._total(AUTOSCALERS) >= count and self.reconciles() >= count

    def _total(self, metric: str) -> int:
        return int(sum(value for _, value in series(self.read(), metric)))


@dataclass
class Row:
    """The measurements of one system in one phase."""

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


HEAD = f"{'rec/s':>40}{'delay p50':>10}{'delay p99':>10}{'ctrl ms':>10}{'api ms':>10}{'req/rec':>9}{'MB':>8}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--period", type=int, default=15, help="the sync period in seconds")
    parser.add_argument(
        "--stock", action="store_true", help="also measure the built-in controller with its default flags"
    )
    parser.add_argument("--alone", action="store_true", help="do not measure the built-in controller")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, control_plane(Path(folder), programs.require()) as plane:
        rows = run(plane, options)
    required = options.count / options.period
    print(f"{options.count} autoscalers, sync period {options.period} s: {required:.1f} reconciles/s required")
    print(HEAD, *rows, sep="\n")
    if not options.alone:
        print(summary(rows))
    print(steady_figures(rows, required))


def run(plane: ControlPlane, options: argparse.Namespace) -> list[Row]:
    """Create the cluster objects, then measure one system after the other."""
    count, port = options.count, free_port()
    prepare(plane, count, port)
    serving, metrics = process(plane, port), StaticMetrics(plane.folder / f"service-{port}.yaml")
    metrics.publish()
    if not options.alone:
        serving.start()
    idle = idle_share(plane)
    rows = []
    if not options.alone:
        create_autoscalers(plane, count, HPA)
        for stock in (True, False) if options.stock else (False,):
            rows += Trial(plane, built_in(plane, options.period, stock=stock), idle, options).rows(metrics.change)
        serving.stop()
        plane.kubectl("delete", "hpa", "--all", "--namespace=bench", "--wait=false")
    create_autoscalers(plane, count, POD_AUTOSCALER)
    system = steadyscale(plane, port, options.period)
    metrics.publish()
    return rows + Trial(plane, system, idle, options).rows(metrics.change)


@dataclass(frozen=True)
class Trial:
    """The measurement of one system."""

    plane: ControlPlane
    system: System
    idle: float
    options: argparse.Namespace

    def rows(self, change: Callable[[], None]) -> list[Row]:
        """Measure the system in the steady phase and while metrics change."""
        system, count = self.system, self.options.count
        system.program.start()
        try:
            within = max(300, count // 10)
            until(lambda: system.has_reconciled(count), "every autoscaler is reconciled", within=within)
            time.sleep(2 * self.options.period)  # until the first status writes are done and the rate is steady
            return [self.measure("steady", lambda: None), self.measure("5 %", change)]
        finally:
            system.program.stop()

    def measure(self, phase: str, change: Callable[[], None]) -> Row:
        """Measure the costs of one phase; ``change`` is called once per period."""
        system, pid, server = self.system, self.system.program.pid, self.plane.apiserver.pid
        before, requests, reconciles = system.read(), api_requests(self.plane), system.reconciles()
        controller_cpu, server_cpu, started = cpu(pid), cpu(server), time.monotonic()
        while (left := started + self.options.seconds - time.monotonic()) > 0:
            change()
            time.sleep(min(self.options.period, left))
        elapsed, controller_cpu = time.monotonic() - started, cpu(pid) - controller_cpu
        server_cpu = max(cpu(server) - server_cpu - self.idle * elapsed, 0.0)
        after, reconciles = system.read(), max(system.reconciles() - reconciles, 1)
        histogram, label = system.delay
        p50, p99 = (quantile(before, after, histogram, part, with_label=label) for part in (0.5, 0.99))
        return Row(
            system.name,
            phase,
            rate=reconciles / elapsed,
            p50=p50,
            p99=p99,
            controller_ms=controller_cpu / reconciles * 1000,
            server_ms=server_cpu / reconciles * 1000,
            requests=max(api_requests(self.plane) - requests - 1, 0) / reconciles,  # 1: the request for /metrics
            megabytes=memory(pid),
        )


def steadyscale(plane: ControlPlane, port: int, period: int) -> System:
    """Prepare Steadyscale as it is installed, in one process."""
    flags = (CONCURRENT_SYNCS, f"--horizontal-pod-autoscaler-sync-period={period}s")
    program = process(plane, port, flags=flags)
    tls = ssl._create_unverified_context()  # noqa: S323, SLF001 - only /metrics is read, on loopback
    plane.kubeconfig("admin")
    tls.load_cert_chain(plane.folder / "admin.crt", plane.folder / "admin.key")
    return System("steadyscale", program, _reader(port, tls), ("steadyscale_autoscaler_reconcile_delay_seconds", ""))


def built_in(plane: ControlPlane, period: int, *, stock: bool) -> System:
    """Prepare a kube-controller-manager that runs only the HPA controller."""
    port = free_port()
    flags = [flag for flag in _manager_flags(plane.folder, port) if "sync-period" not in flag]
    flags += [
        "--controllers=horizontal-pod-autoscaler-controller",
        f"--horizontal-pod-autoscaler-sync-period={period}s",
        "--authorization-always-allow-paths=/healthz,/metrics",
    ]
    if not stock:
        flags += ["--kube-api-qps=5000", "--kube-api-burst=5000", CONCURRENT_SYNCS]
    read = _reader(port, ssl._create_unverified_context())  # noqa: S323, SLF001 - a self-signed certificate on loopback
    command: list[str | Path] = [programs.require()["kube-controller-manager"], *flags]
    program = Program(command, plane.folder / f"manager-{port}.log", lambda: _is_ready(read))
    name = f"built-in HPA ({'stock' if stock else 'tuned'})"
    return System(name, program, read, ("workqueue_queue_duration_seconds", "horizontalpod"))


def _reader(port: int, tls: ssl.SSLContext) -> Callable[[], str]:
    def read() -> str:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", timeout=30, context=tls) as response:
            return str(response.read().decode())

    return read


def _is_ready(read: Callable[[], str]) -> bool:
    try:
        return bool(read())
    except OSError:
        return False


def api_requests(plane: ControlPlane) -> float:
    """Return the number of requests that the API server has served, without watches."""
    text = plane.kubectl("get", "--raw", "/metrics")
    return sum(value for labels, value in series(text, "apiserver_request_total") if 'verb="WATCH"' not in labels)


def idle_share(plane: ControlPlane) -> float:
    """Measure the CPU cores that the API server uses without load."""
    time.sleep(5)
    before = cpu(plane.apiserver.pid)
    time.sleep(10)
    return (cpu(plane.apiserver.pid) - before) / 10


def steady_figures(rows: list[Row], required: float) -> str:
    """Return the figures of Steadyscale in the steady phase in one line."""
    row = next(row for row in rows if (row.system, row.phase) == ("steadyscale", "steady"))
    return (
        f"steadyscale, steady: {row.controller_ms:.3f} ms of controller CPU per reconcile, "
        f"{row.rate / required:.1%} of the required rate, delay p99 {row.p99}, {row.megabytes:.0f} MB"
    )


def summary(rows: list[Row]) -> str:
    """Return the CPU time of Steadyscale as a fraction of the built-in controller's, per phase."""
    cost = {(row.system, row.phase): row.controller_ms + row.server_ms for row in rows}
    other = rows[-3].system
    parts = (f"{phase}: {cost['steadyscale', phase] / cost[other, phase]:.2f}" for phase in ("steady", "5 %"))
    return f"CPU time per reconcile, controller plus API server, as a fraction of the {other}: {', '.join(parts)}"


if __name__ == "__main__":
    main()

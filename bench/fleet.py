"""A fleet of autoscalers beside a real API server: ours, and Kubernetes' own in the same run, on the same targets.

    python -m bench.fleet [--count 1000] [--seconds 30] [--stock]

Each autoscaler has one external metric and a custom target. First nothing changes, then every fifteen seconds 5 % of
the metrics do, and their targets are rescaled. Per system: looks per second, how late they begin, processor time of the
controller and of the API server for each look (what it uses when idle taken off), requests for each look, memory.
``--count 5000`` is the full size.
"""

import argparse
import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from bench.fleet_worker import METRICS
from tests.control_plane import programs
from tests.control_plane.cluster import ControlPlane, _manager_flags, control_plane, free_port
from tests.control_plane.process import Program
from tests.controller.widgets import WIDGETS as DEFINITION
from tests.integration.service import apply_manifests, process, until

Json = dict[str, Any]
WIDGETS = "/apis/example.com/v1/namespaces/bench/widgets"
OURS = "/apis/steadyscale.dev/v1beta1/namespaces/bench/podautoscalers"
NATIVE = "/apis/autoscaling/v2/namespaces/bench/horizontalpodautoscalers"
TICK = os.sysconf("SC_CLK_TCK")
PERIOD = 15
IDLE = [0.0]
"""How much of a processor the API server uses when nobody asks it anything."""
LOOKS = "horizontal_pod_autoscaler_controller_reconciliations_total"


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


def cpu(pid: int) -> float:
    """Say how many seconds of processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory(pid: int) -> float:
    """Say how many megabytes a process has in memory."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def figures(text: str, name: str) -> list[tuple[str, float]]:
    """Read all series of one figure."""
    lines = (line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} ")))
    return [(line.rsplit(" ", 1)[0], float(line.rsplit(" ", 1)[1])) for line in lines]


def requests_of(plane: ControlPlane) -> float:
    """Count the requests that the API server has answered, watches aside."""
    text = plane.kubectl("get", "--raw", "/metrics")
    return sum(value for labels, value in figures(text, "apiserver_request_total") if 'verb="WATCH"' not in labels)


def measured(
    plane: ControlPlane, pid: int, seconds: float, count: Callable[[], int], during: Callable[[], None]
) -> Json:
    """Let time pass, and say what it cost."""
    server = plane.apiserver._running.pid  # noqa: SLF001 - a benchmark looks inside
    before = (requests_of(plane), cpu(pid), cpu(server), count(), time.monotonic())
    while (left := before[4] + seconds - time.monotonic()) > 0:
        during()
        time.sleep(min(PERIOD, left))
    looks, took = max(count() - before[3], 1), time.monotonic() - before[4]
    used, served = cpu(pid) - before[1], max(cpu(server) - before[2] - IDLE[0] * took, 0.0)
    asked = requests_of(plane) - before[0] - 2  # the two that count
    return {
        "rate": looks / took,
        "controller_ms": used / looks * 1000,
        "server_ms": served / looks * 1000,
        "requests": max(asked, 0) / looks,
        "megabytes": memory(pid),
    }


# --- ours ------------------------------------------------------------------------------------------------------------


class Worker:
    """Our controller, as a process that can be talked to."""

    def __init__(self, plane: ControlPlane) -> None:
        words = [sys.executable, "-m", "bench.fleet_worker", str(plane.kubeconfig("admin"))]
        log = (plane.folder / "worker.log").open("w")
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)  # noqa: S603

    def say(self, line: str) -> None:
        """Tell it something."""
        assert self.process.stdin is not None  # noqa: S101 - it was asked for
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def report(self) -> Json:
        """Ask what it has counted."""
        self.say("report")
        assert self.process.stdout is not None  # noqa: S101 - it was asked for
        return dict(json.loads(self.process.stdout.readline()))


def ours(plane: ControlPlane, count: int, seconds: float) -> list[Row]:
    """Measure ours."""
    worker = Worker(plane)
    until(lambda: worker.report()["known"] >= count, "all are known", within=180)
    time.sleep(PERIOD)
    rows = []
    for phase, during in (("steady", lambda: None), ("5 %", lambda: worker.say(f"change {METRICS // 20}"))):
        worker.say("measure")
        result = measured(plane, worker.process.pid, seconds, lambda: worker.report()["passes"], during)
        late = worker.report()["late"]
        p50, p99 = (f"{late[int(len(late) * part)]:.3f}s" for part in (0.5, 0.99))
        rows.append(Row("steadyscale", phase, p50=p50, p99=p99, **result))
    worker.process.stdin.close()  # type: ignore[union-attr]
    worker.process.wait()
    return rows


# --- Kubernetes' own -------------------------------------------------------------------------------------------------


def manager(plane: ControlPlane, *, stock: bool) -> tuple[Program, Callable[[], str]]:
    """Make a controller manager that does nothing but look at HPAs, and say how its figures are read."""
    port = free_port()
    flags = [flag for flag in _manager_flags(plane.folder, port) if "sync-period" not in flag]
    flags += ["--controllers=horizontal-pod-autoscaler-controller", "--horizontal-pod-autoscaler-sync-period=15s"]
    flags += ["--authorization-always-allow-paths=/healthz,/metrics"]
    if not stock:
        flags += ["--kube-api-qps=5000", "--kube-api-burst=5000", "--concurrent-horizontal-pod-autoscaler-syncs=50"]
    tls = ssl._create_unverified_context()  # noqa: S323, SLF001 - it signs its own

    def ask(path: str) -> str:
        url = f"https://127.0.0.1:{port}{path}"
        with urllib.request.urlopen(url, timeout=10, context=tls) as answer:
            return str(answer.read().decode())

    def is_ready() -> bool:
        try:
            return ask("/healthz") == "ok"
        except OSError:
            return False

    command = [programs.require()["kube-controller-manager"], *flags]
    return Program(command, plane.folder / f"manager-{port}.log", is_ready), lambda: ask("/metrics")


def built_in(plane: ControlPlane, count: int, seconds: float, change: Callable[[], None], *, stock: bool) -> list[Row]:
    """Measure Kubernetes' own."""
    program, read = manager(plane, stock=stock)
    program.start()

    def total() -> int:
        return int(sum(value for _, value in figures(read(), LOOKS)))

    rows = []
    try:
        until(lambda: total() >= count, "all were looked at", within=300)
        time.sleep(PERIOD)
        for phase, during in (("steady", lambda: None), ("5 %", change)):
            before = read()
            result = measured(plane, program._running.pid, seconds, total, during)  # noqa: SLF001 - we look inside
            p50, p99 = (quantile(before, read(), part) for part in (0.5, 0.99))
            rows.append(Row(f"built-in HPA ({'stock' if stock else 'tuned'})", phase, p50=p50, p99=p99, **result))
    finally:
        program.stop()
    return rows


def quantile(before: str, after: str, part: float) -> str:
    """Say how long keys waited in line, from two looks at a histogram."""
    name = "workqueue_queue_duration_seconds_bucket"
    old = dict(figures(before, name))
    rows = [(labels, value - old.get(labels, 0)) for labels, value in figures(after, name) if "horizontalpod" in labels]
    total = rows[-1][1] if rows else 0
    bound = next((labels.split('le="')[1].split('"')[0] for labels, value in rows if value >= part * total), "?")
    return f"<{float(bound):.2g}s" if bound != "?" else bound


# --- the stage -------------------------------------------------------------------------------------------------------


async def create(plane: ControlPlane, collection: str, things: list[Json]) -> None:
    """Create many things quickly."""
    limit = asyncio.Semaphore(40)
    async with KubeClient.open(await connect(plane.kubeconfig("admin"))) as kube:

        async def one(thing: Json) -> None:
            async with limit:
                await kube.create(collection, thing)

        await asyncio.gather(*map(one, things))


def autoscaler(index: int, api_version: str, kind: str) -> Json:
    """Make an autoscaler of either kind; the spec is the same."""
    external = {"metric": {"name": f"m{index % METRICS}"}, "target": {"type": "AverageValue", "averageValue": "5"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "example.com/v1", "kind": "Widget", "name": f"w{index}"},
        "minReplicas": 1,
        "maxReplicas": 20,
        "metrics": [{"type": "External", "external": external}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": f"a{index}"}, "spec": spec}


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


def run(plane: ControlPlane, options: argparse.Namespace) -> list[Row]:
    """Set the stage, and let one after the other play on it."""
    count, port = options.count, free_port()
    prepare(plane, count, port)
    serving, numbers = process(plane, port), Published(plane.folder / f"service-{port}.yaml")
    numbers.publish()
    serving.start()
    IDLE[0] = idle(plane)
    asyncio.run(
        create(plane, NATIVE, [autoscaler(i, "autoscaling/v2", "HorizontalPodAutoscaler") for i in range(count)])
    )
    rows = []
    for stock in (True, False) if options.stock else (False,):
        rows += built_in(plane, count, options.seconds, numbers.change, stock=stock)
    serving.stop()
    plane.kubectl("delete", "hpa", "--all", "--namespace=bench", "--wait=false")
    mine = [autoscaler(i, "steadyscale.dev/v1beta1", "PodAutoscaler") for i in range(count)]
    asyncio.run(create(plane, OURS, mine))
    return rows + ours(plane, count, options.seconds)


def idle(plane: ControlPlane) -> float:
    """Measure what the API server uses when nobody asks it anything."""
    server = plane.apiserver._running.pid  # noqa: SLF001 - a benchmark looks inside
    time.sleep(5)
    before = cpu(server)
    time.sleep(10)
    return (cpu(server) - before) / 10


def prepare(plane: ControlPlane, count: int, port: int) -> None:
    """Install what is shipped, and make the targets."""
    apply_manifests(plane, port)
    plane.kubectl("apply", "-f", "-", stdin=json.dumps(DEFINITION))
    plane.kubectl(
        "wait", "--for=condition=Established", "crd/widgets.example.com", "crd/podautoscalers.steadyscale.dev"
    )
    plane.kubectl("create", "namespace", "bench")
    plane.controller_manager.stop()
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 8}}
    asyncio.run(create(plane, WIDGETS, [{**widget, "metadata": {"name": f"w{i}"}} for i in range(count)]))
    asyncio.run(say_sizes(plane, count))


class Published:
    """The hundred metrics as our adapter serves them to the built-in HPA, out of its configuration."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._numbers = {f"m{index}": 40 for index in range(METRICS)}
        self._turn = 0

    def publish(self) -> None:
        """Write them into the configuration."""
        content = json.loads(self._config.read_text())
        content["rules"] = [{"name": name, "static": [{"value": value}]} for name, value in self._numbers.items()]
        self._config.write_text(json.dumps(content))

    def change(self) -> None:
        """Let the next few be more, or less again."""
        for _ in range(METRICS // 20):
            name = f"m{self._turn % METRICS}"
            self._turn += 1
            self._numbers[name] = 80 if self._numbers[name] == 40 else 40
        self.publish()


async def say_sizes(plane: ControlPlane, count: int) -> None:
    """Let every target say how many pods it has, and which."""
    limit = asyncio.Semaphore(40)
    async with KubeClient.open(await connect(plane.kubeconfig("admin"))) as kube:

        async def one(index: int) -> None:
            async with limit:
                own = {"size": 8, "selector": f"app=w{index}"}
                await kube.patch(f"{WIDGETS}/w{index}/status", {"status": own})

        await asyncio.gather(*map(one, range(count)))


if __name__ == "__main__":
    main()

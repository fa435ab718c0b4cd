"""The controller alone, for bench/fleet.py: metrics are numbers in memory, and figures go to standard output as JSON.

Reads lines from standard input: ``measure`` begins to count anew, ``report`` prints what was counted, ``change N`` lets
N of the hundred metrics take another value.
"""

import asyncio
import gc
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry

from autoscaler.controller.run import Control
from autoscaler.kube.connection import connect
from autoscaler.ports import MetricChange, Unsubscribe
from autoscaler.readings import read_external
from autoscaler.selector import Selector
from autoscaler.settings import operation
from autoscaler.telemetry import ControllerTelemetry
from autoscaler.types.observation import ExternalReading, Unreadable

METRICS = 100


def clock() -> datetime:
    """Look at the clock."""
    return datetime.now(UTC)  # noqa: TID251


class Numbers:
    """A hundred metrics; when one changes, whoever listens is told, as snapshots do."""

    def __init__(self) -> None:
        self.values = dict.fromkeys((f"m{index}" for index in range(METRICS)), 40_000)
        self._listeners: list = []
        self._turn = 0

    async def read(self, _namespace: str, metric: str, _selector: Selector) -> ExternalReading | Unreadable:
        """Say what a metric is."""
        return read_external((self.values[metric],), clock())

    def subscribe(self, changed) -> Unsubscribe:  # noqa: ANN001 - as in the port
        """Tell of changes."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def change(self, count: int) -> None:
        """Let the next few metrics be more, or less again."""
        for _ in range(count):
            name = f"m{self._turn % METRICS}"
            self._turn += 1
            self.values[name] = 80_000 if self.values[name] == 40_000 else 40_000
            for listener in self._listeners:
                listener(MetricChange(name))


class Counted(ControllerTelemetry):
    """Figures that can be counted anew."""

    def __init__(self) -> None:
        super().__init__(CollectorRegistry())
        self.passes = 0
        self.late: list[float] = []
        self.lateness = self  # type: ignore[assignment]

    def observe(self, seconds: float) -> None:
        """Take in how late a visit begins."""
        self.late.append(seconds)

    def passed(self, how, took) -> None:  # noqa: ANN001 - as in the base
        """Count a pass."""
        super().passed(how, took)
        self.passes += 1


async def main(kubeconfig: str) -> None:
    """Control until standard input ends."""
    gc.freeze()  # as the process does that is measured for
    gc.set_threshold(20_000, 20, 20)
    numbers, figures = Numbers(), Counted()
    chosen = operation({"leader-elect": "false", "concurrent-horizontal-pod-autoscaler-syncs": "20"})
    control = Control(await connect(Path(kubeconfig)), numbers, chosen, figures, clock, "bench")
    running = asyncio.create_task(control.run())
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := (await lines.readline()).decode().split():
        if line[0] == "measure":
            figures.passes, figures.late = 0, []
        elif line[0] == "change":
            numbers.change(int(line[1]))
        else:
            known = len(control.decisions())
            print(json.dumps({"passes": figures.passes, "late": sorted(figures.late), "known": known}), flush=True)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

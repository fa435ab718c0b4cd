"""Jumps of the wall clock of a running process, and processes that start with a wrong one; simulated by libfaketime."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from adapter.process import clock
from tests.faults.rig import FaultRig, wait_for_log
from tests.integration.scaling import autoscaler, deployment
from tests.integration.service import until

pytestmark = pytest.mark.faults

LIBRARY: Final = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
WINDOW: Final = 45
"""Seconds: longer than the Lease of a killed leader is valid."""

HOUR: Final = 3600
ERRORS: Final = (-HOUR, HOUR)


@dataclass(frozen=True)
class WallClock:
    """The wall clock of the processes of a rig; the steady clocks of the machine are not changed."""

    file: Path

    def set(self, error: int) -> None:
        """Set the clock to the right time plus some seconds."""
        replacement = self.file.with_suffix(".new")
        replacement.write_text(f"{error:+d}\n")
        replacement.replace(self.file)

    @property
    def prefix(self) -> tuple[str, ...]:
        file = f"FAKETIME_TIMESTAMP_FILE={self.file}"
        return "env", f"LD_PRELOAD={LIBRARY}", file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"


def restart(rig: FaultRig, error: int) -> WallClock:
    """Replace the process of a rig by one whose wall clock is wrong."""
    if not LIBRARY.exists():
        pytest.fail("libfaketime is not installed: apt-get install faketime")
    faked = WallClock(rig.plane.folder / f"clock-{rig.namespace}")
    faked.set(error)
    rig.programs.pop().kill()
    rig.prefix = faked.prefix
    rig.start(name="two")
    return faked


def start(rig: FaultRig) -> float:
    """Create an autoscaler with a window, and lower the metric; return when it was high for the last time."""
    behavior = {"scaleDown": {"stabilizationWindowSeconds": WINDOW}}
    rig.apply(deployment("web", 8), autoscaler("web", behavior=behavior))
    rig.wait_for_condition("AbleToScale", "True", "ReadyForNewScale", within=120)
    rig.set_and_wait(queue=10)
    return time.monotonic()


def assert_window_ends_on_time(rig: FaultRig, lowered: float) -> None:
    while time.monotonic() < lowered + WINDOW - 8:
        assert rig.replicas() == 8, rig.logs()
        time.sleep(0.5)
    rig.wait_for_replicas(2, within=60)
    until(lambda: "lastScaleTime" in rig.get("PodAutoscaler")["status"], "the rescale is in the status")
    scaled = datetime.fromisoformat(rig.get("PodAutoscaler")["status"]["lastScaleTime"])
    assert abs(clock() - scaled) < timedelta(seconds=60)


@pytest.mark.parametrize("jump", ERRORS)
def test_jump_of_the_wall_clock_changes_no_duration(faulty: FaultRig, jump: int) -> None:
    faked = restart(faulty, 0)
    lowered = start(faulty)
    faked.set(jump)
    assert_window_ends_on_time(faulty, lowered)
    wait_for_log(faulty, "wall clock jumped")
    faulty.set(queue=40)
    faulty.wait_for_replicas(8)


@pytest.mark.parametrize("error", ERRORS)
def test_successor_with_a_wrong_wall_clock_continues_the_window(faulty: FaultRig, error: int) -> None:
    lowered = start(faulty)
    restart(faulty, error)
    assert_window_ends_on_time(faulty, lowered)
    wait_for_log(faulty, "wall clock differs from that of the API server")

"""`steadyscale demo` as a subprocess: the scenario has the documented course, and no files or processes remain."""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from tests.control_plane.programs import find
from tests.demo.runner import DemoProcess, running_demo, summary_rows
from tests.prometheus import server
from tests.waiting import GIVE_UP

pytestmark = pytest.mark.slow
FALLBACK_REPLICAS = 16


class CompletedDemo(NamedTuple):
    """The output of a demo that ran to the end."""

    text: str
    code: int
    errors: str
    log: str
    replicas: list[int]

    @property
    def rows(self):
        return summary_rows(self.text)

    def first(self, change, after="00:00:00"):
        return next(row for row in self.rows if row["change"] == change and row["time"] >= after)


@pytest.fixture(scope="module")
def completed():
    with running_demo("--once", "--speed=150", "--keep", "--no-page") as demo:
        demo.wait_for("Quiet morning")
        demo.watch()
        code, errors = demo.wait()
        log = (demo.folder / "steadyscale.log").read_text()
        shutil.rmtree(demo.folder)
        return CompletedDemo(demo.text, code, errors, log, demo.replicas)


def test_demo_exits_without_errors(completed):
    assert (completed.code, completed.errors) == (0, "")
    assert "Traceback" not in completed.text + completed.log
    assert not re.search(r"Z (error|critical) ", completed.log)


def test_introduction_names_the_speed(completed):
    assert "Time runs up to 150 times faster" in completed.text.replace("\n", " ")


def test_lines_have_at_most_80_columns(completed):
    program = Path(sys.executable).parent / "steadyscale"
    lines = completed.text.replace(str(program), "steadyscale").splitlines()

    assert [line for line in lines if len(line) > 80] == []


def test_printed_replicas_equal_those_of_the_deployment(completed):
    printed = [row["replicas"] for row in completed.rows if row["current"] != row["replicas"]]

    assert completed.replicas == [1, *printed]


def test_rush_scales_up(completed):
    scaled_up = completed.first("scaled up", after="08:02:00")  # the quiet morning may scale up as well

    assert scaled_up["time"] < "08:04:00"
    assert scaled_up["current"] < scaled_up["replicas"]


def test_outage_keeps_the_replicas_and_then_uses_the_fallback(completed):
    failing = completed.first("metric failing", after="08:07:00")
    fallback = completed.first("fallback", after=failing["time"])
    rescales = [row for row in completed.rows if row["current"] != row["replicas"]]
    during_outage = [row for row in rescales if failing["time"] <= row["time"] < fallback["time"]]
    after = next(row for row in rescales if row["time"] >= fallback["time"])

    assert "08:10:00" <= fallback["time"] < "08:11:00", "after failureDurationSeconds, three minutes"
    assert during_outage == []
    assert after["current"] == failing["current"]
    assert FALLBACK_REPLICAS in completed.replicas
    assert after["reason"].startswith("fallback of 16 replicas")


def test_metric_recovers_with_the_backend(completed):
    assert "08:13:00" <= completed.first("metric recovered", after="08:13:00")["time"] < "08:14:00"


def test_closed_shop_scales_to_zero_and_the_first_order_scales_from_zero(completed):
    to_zero, from_zero = completed.first("scaled to zero"), completed.first("scaled from zero")

    assert "08:21:00" < to_zero["time"] < "08:26:00" <= from_zero["time"] < "08:27:30"
    assert (from_zero["current"], from_zero["replicas"]) == (0, 1)


def run(command: str) -> str:
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=GIVE_UP)  # noqa: S603, S607 - a printed command
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def slow_demo():
    """Run a demo that is slow enough to try commands before the outage."""
    with running_demo("--speed=10") as demo:
        demo.wait_for("Quiet morning")
        yield demo


def test_printed_commands_work_and_an_interrupt_stops_everything(slow_demo: DemoProcess):
    trace = run(slow_demo.command("read the metric, with each step"))
    explanation = run(slow_demo.command("explain the last decision"))
    with build_opener(HTTPCookieProcessor()).open(slow_demo.page, timeout=60) as response:
        page = response.read().decode()
    folder = slow_demo.folder
    if kubectl := find("kubectl"):
        commands = [
            slow_demo.command(title).replace("kubectl", str(kubectl), 1)
            for title in ("list the objects", "read the metric as an HPA does")
        ]
        listed, raw = map(run, commands)
        assert "PodAutoscaler" in listed
        assert "checkout-consumer" in run(f"{kubectl} --kubeconfig {folder}/kubeconfig get spa")
        assert json.loads(raw)["items"][0]["metricName"] == "checkout_queue_messages"

    slow_demo.process.send_signal(signal.SIGINT)

    assert slow_demo.wait() == (0, "")
    assert "HPA response" in trace
    assert "checkout_queue_messages" in explanation
    assert "<html" in page
    assert "Summary:" in slow_demo.text
    assert not folder.exists()
    assert not Path(f"/proc/{slow_demo.process.pid}").exists()


def test_scenario_is_the_same_with_a_real_prometheus():
    server.require()
    with running_demo("--once", "--speed=60", "--no-page", "--prometheus") as demo:
        code, errors = demo.wait(timeout=GIVE_UP * 3)

    completed = CompletedDemo(demo.text, code, errors, "", [])
    assert (code, errors) == (0, "")
    assert completed.first("scaled up", after="08:02:00")["time"] < "08:04:00"
    assert "08:10:00" <= completed.first("fallback")["time"] < "08:11:00"
    assert "08:13:00" <= completed.first("metric recovered", after="08:13:00")["time"] < "08:14:30"
    assert "08:21:00" < completed.first("scaled to zero")["time"] < "08:26:00"
    assert "08:26:00" <= completed.first("scaled from zero")["time"] < "08:27:30"


def test_demo_can_be_stopped_during_startup():
    with running_demo("--speed=60") as demo:
        demo.wait_for("Press Ctrl-C")
        demo.process.send_signal(signal.SIGTERM)

        assert demo.wait() == (0, "")
        assert summary_rows(demo.text) == []


def test_used_port_is_reported_in_one_line():
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        with running_demo(f"--port={port}") as demo:
            message = f"cannot listen on 127.0.0.1:{port}: Address already in use; choose another --port\n"
            assert demo.wait() == (1, message)


def test_two_demos_run_on_one_machine():
    with running_demo("--speed=60", "--no-page") as first, running_demo("--speed=60", "--no-page") as second:
        for demo in (first, second):
            demo.wait_for("Quiet morning")
            demo.process.send_signal(signal.SIGTERM)

        assert [demo.wait() for demo in (first, second)] == [(0, ""), (0, "")]

"""`steadyscale demo`, played as a user plays it: the story comes out as promised, and it leaves nothing behind."""

import json
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.control_plane.programs import find
from tests.demo.runner import Play, happened, playing
from tests.prometheus import server

FALLBACK = 16


class Day(NamedTuple):
    """A day that was played to its end."""

    text: str
    code: int
    errors: str
    log: str
    sizes: list[int]

    @property
    def rows(self):
        return happened(self.text)

    def first(self, what, after="00:00:00"):
        return next(row for row in self.rows if row["what"] == what and row["at"] >= after)


@pytest.fixture(scope="module")
def day():
    with playing("--once", "--speed=150", "--keep", "--no-page") as play:
        play.until("the service's log")
        play.watch()
        code, errors = play.end()
        log = (play.folder / "steadyscale.log").read_text()
        shutil.rmtree(play.folder)
        return Day(play.text, code, errors, log, play.sizes)


def test_it_ends_by_itself_and_without_a_complaint(day):
    assert (day.code, day.errors) == (0, "")
    assert "Traceback" not in day.text + day.log
    assert not re.search(r"Z (error|critical) ", day.log)


def test_it_says_how_fast_time_runs(day):
    assert "Time runs at most 150 times as fast as yours" in day.text


def test_what_it_prints_is_what_the_cluster_says(day):
    printed = [row["replicas"] for row in day.rows if row["was"] != row["replicas"]]

    assert day.sizes == [1, *printed]


def test_it_grows_in_the_rush(day):
    grew = day.first("grew", after="08:02:00")  # a quiet morning may have brought one already

    assert grew["at"] < "08:04:00"
    assert grew["was"] < grew["replicas"]


def test_it_holds_while_it_is_blind_and_then_falls_back_to_the_configured_count(day):
    blind = day.first("cannot see", after="08:07:00")
    fell_back = day.first("fell back", after=blind["at"])
    meanwhile = [
        row for row in day.rows if blind["at"] <= row["at"] < fell_back["at"] and row["was"] != row["replicas"]
    ]
    after = next(row for row in day.rows if row["at"] >= fell_back["at"] and row["was"] != row["replicas"])

    assert "08:10:00" <= fell_back["at"] < "08:11:00", "three minutes, as failureDurationSeconds says"
    assert meanwhile == []
    assert after["was"] == blind["was"]
    assert FALLBACK in day.sizes
    assert "fallback asks for 16" in after["why"]


def test_it_recovers_when_the_backend_is_back(day):
    assert "08:13:00" <= day.first("sees again", after="08:13:00")["at"] < "08:14:00"


def test_it_goes_to_zero_at_night_and_wakes_with_the_first_order(day):
    slept, woke = day.first("went to zero"), day.first("woke up")

    assert "08:21:00" < slept["at"] < "08:26:00" <= woke["at"] < "08:27:30"
    assert (woke["was"], woke["replicas"]) == (0, 1)


def run(command: str) -> str:
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)  # noqa: S603, S607 - what a user types
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def slow():
    """Give a demonstration that has just begun its day, and leaves time to try things before the backend fails."""
    with playing("--speed=10") as play:
        play.until("A quiet morning")
        yield play


def test_the_printed_commands_work_and_an_interrupt_ends_everything(slow: Play):
    served = json.loads(run(slow.command("the metric, as an HPA asks for it")))
    told = run(slow.command("where the number comes from"))
    explained = run(slow.command("why it decided so"))
    page = run(f"curl --fail --silent {slow.command('the page')}")
    folder = slow.folder
    if kubectl := find("kubectl"):
        asked = [
            slow.command(title).replace("kubectl", str(kubectl), 1)
            for title in ("the cluster", "the same with kubectl")
        ]
        listed, raw = map(run, asked)
        assert "PodAutoscaler" in listed
        assert "checkout-consumer" in run(f"{kubectl} --kubeconfig {folder}/kubeconfig get spa")
        assert json.loads(raw)["kind"] == "ExternalMetricValueList"

    slow.process.send_signal(signal.SIGINT)

    assert slow.end() == (0, "")
    assert served["items"][0]["metricName"] == "checkout_queue_messages"
    assert "an HPA hears" in told
    assert "checkout_queue_messages asks for" in explained
    assert "<html" in page
    assert "What happened, and why" in slow.text
    assert not folder.exists()
    assert not Path(f"/proc/{slow.process.pid}").exists()


def test_with_a_real_prometheus_it_is_the_same_day():
    server.require()
    with playing("--once", "--speed=60", "--no-page", "--prometheus") as play:
        code, errors = play.end(within=240)

    day = Day(play.text, code, errors, "", [])
    assert (code, errors) == (0, "")
    assert day.first("grew", after="08:02:00")["at"] < "08:04:00"
    assert "08:10:00" <= day.first("fell back")["at"] < "08:11:00"
    assert "08:13:00" <= day.first("sees again", after="08:13:00")["at"] < "08:14:30"
    assert "08:21:00" < day.first("went to zero")["at"] < "08:26:00" <= day.first("woke up")["at"] < "08:27:30"


def test_it_can_be_ended_before_it_has_begun():
    with playing("--speed=60") as play:
        play.until("Ctrl-C ends it")
        play.process.send_signal(signal.SIGTERM)

        assert play.end() == (0, "")
        assert happened(play.text) == []


def test_a_port_that_is_taken_is_said_in_a_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with playing(f"--port={port}") as play:
            assert play.end() == (1, f"port {port}: Address already in use\n")

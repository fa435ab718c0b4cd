"""``steadyscale explain`` and ``steadyscale debug`` against the real server on loopback."""

import asyncio
import io
import json
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from aiohttp import ClientSession

from adapter.__main__ import main
from tests.browser.serving import page
from tests.browser.story import HOSTILE, told


class _Serving(threading.Thread):
    """Serves the page in a loop of its own, since a command brings its own loop."""

    def __init__(self) -> None:
        super().__init__(name="page")
        self.url: Future[str] = Future()
        self._end: Future[object] = Future()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        told_to = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with page() as shown:
            told(shown.shelf)
            self._end.set_result(lambda: loop.call_soon_threadsafe(told_to.set))
            self.url.set_result(shown.url)
            await told_to.wait()

    def stop(self) -> None:
        stop = self._end.result(10)
        assert callable(stop)
        stop()
        self.join(10)


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    thread = _Serving()
    thread.start()
    yield thread.url.result(20)
    thread.stop()


def test_the_working_in_the_terminal(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "shop/orders", "--server", service]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "shop/orders  scales Deployment/orders",
        "normal",
        "",
        "4 replicas at 12:45:00 UTC: decided by the stabilization window",
        "may change by itself at 12:45:45 UTC",
        "",
        "      4  the target asks for 4 replicas and has 4; allowed: 2 to 24",
        "      3  orders_waiting asks for 3: 20.85 where 30 is wanted, so the total divided by 30",
        "      3  together they ask for 3 (orders_waiting)",
        ">     4  wants 3, holds 4 until 12:45:45: the 300 s window still contains 4 from 12:40:45",
        "      4  wants 4, which is within all limits",
        "      4  stays at 4",
    ]


def test_of_a_target_that_is_lost_no_size_is_claimed(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "data/lost", "--server", service]) == 0

    _, state, _, verdict, *_ = capsys.readouterr().out.splitlines()
    assert state.startswith("target lost")
    assert verdict.startswith("size unknown (was 3) at ")


def test_scripts_get_json(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "shop/mails", "--server", service, "-o", "json"]) == 0

    assert json.loads(capsys.readouterr().out)["state"] == "fallback"


class Terminal(io.StringIO):
    """Says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("no_color", "is_coloured"), [("", True), ("1", False)])
def test_a_terminal_gets_colour_unless_it_wants_none(
    service: str, monkeypatch: pytest.MonkeyPatch, no_color: str, *, is_coloured: bool
):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")

    assert main(["explain", "shop/search", "--server", service]) == 0
    assert ("\x1b[33mfailing since 12:44:00\x1b[0m  mails_waiting" in screen.getvalue()) is is_coloured


def test_nothing_from_outside_reaches_the_terminal_as_a_command(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "odd/hostile", "--server", service]) == 0
    said = capsys.readouterr().out

    assert HOSTILE in said
    assert re.search(r"[^\n\x20-\x7e→]", said) is None


@pytest.mark.parametrize(
    ("autoscaler", "says"),
    [
        pytest.param("orders", "'orders' is not NAMESPACE/NAME, such as shop/orders", id="no namespace"),
        pytest.param("shop/a/b", "'shop/a/b' is not NAMESPACE/NAME, such as shop/orders", id="too many parts"),
        pytest.param("shop/nothing", "404: no decision was made for an autoscaler 'shop/nothing'", id="unknown"),
    ],
)
def test_a_question_without_an_answer_is_an_exit_code_and_a_reason(
    service: str, capsys: pytest.CaptureFixture[str], autoscaler: str, says: str
):
    assert main(["explain", autoscaler, "--server", service]) == 2
    assert capsys.readouterr().err.startswith(says)


def test_a_kubeconfig_that_is_not_there_is_told(
    service: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, nothing_blocks_the_loop
):
    nothing_blocks_the_loop.deactivate()  # a command may read a file
    assert main(["explain", "shop/orders", "--server", service, "--kubeconfig", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith("no cluster to connect to: ")


def test_no_service_is_told_before_a_page_is_promised(capsys: pytest.CaptureFixture[str]):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert main(["debug", "--server", f"https://127.0.0.1:{port}"]) == 2
    assert capsys.readouterr().err == (
        f"https://127.0.0.1:{port}: Connection refused; is the service there? "
        "Perhaps `kubectl port-forward -n steadyscale deploy/steadyscale 6443` is missing\n"
    )


async def test_the_page_is_shown_on_loopback_to_who_asked_for_loopback(service: str):
    command = (sys.executable, "-m", "adapter", "debug", "--port", "0", "--server", service)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    address = (await process.stdout.readline()).decode().removeprefix("the page: ").strip()
    async with ClientSession() as session:
        async with session.get(address.removesuffix("/debug/page")) as answer:
            assert (answer.status, answer.url.path, answer.content_type) == (200, "/debug/page", "text/html")
        async with session.get(address.replace("/page", "/picture")) as answer:
            assert (await answer.json())["total"] == 13
        async with session.get(address, headers={"Host": "evil.example"}) as answer:
            assert answer.status == 403
        async with session.post(address) as answer:
            assert answer.status == 405
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 0

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
from aiohttp import ClientSession, CookieJar

from adapter.__main__ import main
from tests.browser.sample_decisions import HOSTILE, add_samples
from tests.browser.served_page import serve_page
from tests.control_plane.certificates import Authority
from tests.waiting import GIVE_UP


class _PageThread(threading.Thread):
    """Serves the page in another thread, because each command runs its own event loop."""

    def __init__(self) -> None:
        super().__init__(name="page")
        self.url: Future[str] = Future()
        self._stopper: Future[object] = Future()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with serve_page() as served:
            add_samples(served.log)
            self._stopper.set_result(lambda: loop.call_soon_threadsafe(stop.set))
            self.url.set_result(served.url)
            await stop.wait()

    def stop(self) -> None:
        stop = self._stopper.result(10)
        assert callable(stop)
        stop()
        self.join(GIVE_UP)


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    thread = _PageThread()
    thread.start()
    yield thread.url.result(20)
    thread.stop()


def test_steps_are_printed_as_text(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "shop/orders", "--server", service]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "shop/orders  target: Deployment/orders",
        "normal",
        "",
        "4 replicas at 12:45:00 UTC; limiting factor: stabilization window",
        "with unchanged metrics, the next change is possible at 12:45:45 UTC",
        "",
        "      4  target: spec 4 replicas, status 4; bounds 2 to 24",
        (
            "      3  orders_waiting: proposes 3 replicas: 20.85 per replica, target 30: ceil(83.4 / 30) = 3;"
            " ratio 0.695 is outside the tolerance of 0.9 to 1.1"
        ),
        "      3  recommendation: 3 (from orders_waiting)",
        ">     4  stabilization: 4 until 12:45:45 (300 s window contains 4 from 12:40:45)",
        "      4  limits: 4, within policies and bounds",
        "      4  result: 4 replicas, unchanged",
    ]


def test_replicas_of_an_unavailable_target_are_unknown(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "data/deleted", "--server", service]) == 0

    _, state, _, result, *_ = capsys.readouterr().out.splitlines()
    assert state.startswith("target unavailable")
    assert result.startswith("replicas unknown (last known: 3) at ")


def test_json_output(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "shop/mails", "--server", service, "-o", "json"]) == 0

    assert json.loads(capsys.readouterr().out)["state"] == "fallback"


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("no_color", "has_colors"), [("", True), ("1", False)])
def test_colors_are_used_on_a_terminal_without_no_color(
    service: str, monkeypatch: pytest.MonkeyPatch, no_color: str, *, has_colors: bool
):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")

    assert main(["explain", "shop/search", "--server", service]) == 0
    assert ("\x1b[33mmetric failing since 12:44:00\x1b[0m  mails_waiting" in screen.getvalue()) is has_colors


def test_control_characters_are_escaped(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "odd/hostile", "--server", service]) == 0
    output = capsys.readouterr().out

    assert HOSTILE in output
    assert re.search(r"[^\n\x20-\x7e→]", output) is None


@pytest.mark.parametrize(
    ("autoscaler", "message"),
    [
        pytest.param(
            "orders",
            "'orders' does not have the form NAMESPACE/NAME, such as shop/orders; a NAME needs -n NAMESPACE",
            id="no namespace",
        ),
        pytest.param(
            "shop/a/b", "'shop/a/b' does not have the form NAMESPACE/NAME, such as shop/orders", id="too many slashes"
        ),
        pytest.param("shop/nothing", "404: no decision for PodAutoscaler 'shop/nothing'", id="unknown autoscaler"),
    ],
)
def test_failed_request_has_an_exit_code_and_a_reason(
    service: str, capsys: pytest.CaptureFixture[str], autoscaler: str, message: str
):
    assert main(["explain", autoscaler, "--server", service]) == 2
    assert capsys.readouterr().err.startswith(message)


def test_missing_kubeconfig_is_reported(
    service: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, blocking_calls_fail
):
    blocking_calls_fail.deactivate()  # a command may read a file
    missing = tmp_path / "none"
    assert main(["explain", "shop/orders", "--server", service, "--kubeconfig", str(missing)]) == 2
    message = f"cannot load the Kubernetes client configuration from {missing}: No such file or directory"
    assert capsys.readouterr().err.startswith(message)


def test_unreachable_service_is_reported_before_the_page_is_served(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, blocking_calls_fail
):
    blocking_calls_fail.deactivate()  # a command may read a file
    ca = tmp_path / "ca.crt"
    ca.write_text(Authority.new("service").pem)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert main(["debug", "--server", f"https://127.0.0.1:{port}", "--ca-file", str(ca)]) == 2
    assert capsys.readouterr().err == (
        f"https://127.0.0.1:{port}: Connection refused; to reach the service in a cluster, run the command without "
        "--server, or first `kubectl port-forward -n steadyscale deploy/steadyscale 6443`\n"
    )


async def test_used_port_of_the_page_is_reported_in_one_line(service: str):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = (sys.executable, "-m", "adapter", "debug", "--port", str(port), "--server", service)
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        _, errors = await process.communicate()

    message = f"cannot listen on 127.0.0.1:{port}: Address already in use; choose another --port\n"
    assert (process.returncode, errors.decode()) == (2, message)


async def test_page_is_served_on_loopback_to_one_browser(service: str):
    command = (sys.executable, "-m", "adapter", "debug", "--port", "0", "--server", service)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    address = (await process.stdout.readline()).decode().removeprefix("Debugging page: ").strip()
    page = address.partition("/open/")[0] + "/debug/page"
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session, ClientSession() as other:
        async with session.get(address) as response:
            assert (response.status, str(response.url), response.content_type) == (200, page, "text/html")
        async with session.get(page.replace("/page", "/overview")) as response:
            assert (await response.json())["total"] == 13
        async with session.post(page) as response:
            assert response.status == 403
        async with other.get(page) as response:
            assert response.status == 403
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 0


def test_namespace_that_contradicts_the_argument_is_an_error(service: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "shop/orders", "-n", "shop", "--server", service]) == 0
    assert main(["explain", "shop/orders", "-n", "bank", "--server", service]) == 2
    assert capsys.readouterr().err == "--namespace: 'bank' is not the namespace of 'shop/orders': omit one of them\n"

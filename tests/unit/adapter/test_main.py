"""The command as a person and a kubelet use it; the process test has a cluster in memory."""

import asyncio
import logging
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from aiohttp import ClientSession, TCPConnector

from adapter.__main__ import _parser, main
from adapter.commands.help_texts import ALL, LESSONS, Lesson
from adapter.fakecluster.cluster import Cluster
from tests.control_plane.certificates import Authority

TRUST = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/m"


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Give back the log, which the command takes over."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_every_problem_of_a_bad_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "config.yaml"
    file.write_text("{servng: {}, limts: {}}")

    assert main(["serve", "--config", str(file)]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "servng: unknown key; did you mean 'serving'?",
        "limts: unknown key; did you mean 'limits'?",
    ]


def test_no_cluster_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], nothing_blocks_the_loop):
    nothing_blocks_the_loop.deactivate()  # before it serves anyone, the process may read a file
    file = tmp_path / "config.yaml"
    file.write_text("{}")

    assert main(["serve", "--config", str(file), "--kubeconfig", str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("no cluster to connect to: ")


@pytest.mark.parametrize("lesson", [ALL, *LESSONS.values()], ids=["steadyscale", *LESSONS])
def test_every_example_of_the_help_is_a_command(lesson: Lesson):
    for command, _ in lesson.examples:
        program, *words = shlex.split(command)
        assert program == "steadyscale"
        assert _parser().parse_args(words).command in LESSONS


@pytest.mark.parametrize("command", LESSONS)
def test_the_help_of_a_command_says_what_it_is_for_and_how_it_is_used(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])

    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert LESSONS[command].about in said
    assert f"  steadyscale {command}" in said.partition("examples:")[2]


@pytest.mark.parametrize("speed", ["0", "301", "nan"])
def test_a_day_can_be_neither_stopped_nor_over_at_once(speed: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--speed", speed])

    assert ended.value.code == 2
    assert f"--speed: must be between 1 and 300, is {speed}" in capsys.readouterr().err


@asynccontextmanager
async def running(folder: Path, api: Cluster) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run the command as a pod would; yield the process and its address."""
    authority = Authority.new("serving")
    cert, key = authority.server("127.0.0.1").save(folder, "serving")
    cluster = {"name": "c", "cluster": {"server": api.connection.server}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    kubeconfig = {"clusters": [cluster], "users": [{"name": "u", "user": {"token": "t"}}], "contexts": [context]}
    (folder / "kubeconfig").write_text(yaml.safe_dump({**kubeconfig, "current-context": "x"}))
    config = {
        "serving": {"address": "127.0.0.1", "port": 0, "tls": {"files": {"certFile": str(cert), "keyFile": str(key)}}},
        "auth": {"kubeconfig": str(folder / "kubeconfig")},
        "limits": {"shutdownDelay": "300ms"},
        "rules": [{"name": "m", "static": [{"value": 1}]}],
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "adapter",
        "serve",
        "--config",
        str(folder / "config.yaml"),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process, f"https://127.0.0.1:{await _port(process)}"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _port(process: asyncio.subprocess.Process) -> int:
    assert process.stderr is not None
    seen = []
    while line := await asyncio.wait_for(process.stderr.readline(), 30):
        seen.append(line)
        if (said := yaml.safe_load(line))["msg"] == "serving":
            return int(said["port"])
    raise AssertionError(seen)


async def until(session: ClientSession, path: str, status: int) -> None:
    """Ask until the answer is this one."""
    async with asyncio.timeout(20):
        while (await session.get(path)).status != status:  # noqa: ASYNC110  (it is another process)
            await asyncio.sleep(0.02)


async def test_a_process_starts_serves_and_leaves_in_good_order(tmp_path: Path, nothing_blocks_the_loop):
    nothing_blocks_the_loop.deactivate()  # this test writes files and starts a process; the server is in that one
    async with Cluster.serving() as api:
        api.reviews.tokens["good"] = {"username": "bob", "groups": []}
        api.reviews.allows = lambda spec: spec["user"] == "bob"
        async with (
            running(tmp_path, api) as (process, url),
            ClientSession(url, connector=TCPConnector(ssl=False)) as session,
        ):
            await until(session, "/readyz", 500)  # alive, and not ready before the cluster's trust is known
            api.put(TRUST, {"data": {"client-ca-file": Authority.new("clients").pem}})
            await until(session, "/readyz", 200)
            answer = await session.get(METRIC, headers={"Authorization": "Bearer good"})
            assert (answer.status, (await answer.json())["items"][0]["value"]) == (200, "1")
            assert (await session.get(METRIC)).status == 403

            process.send_signal(signal.SIGTERM)
            await until(session, "/readyz", 500)
            assert (await session.get(METRIC, headers={"Authorization": "Bearer good"})).status == 200
            assert await asyncio.wait_for(process.wait(), 20) == 0

"""The command line, and the process against an in-memory cluster."""

import asyncio
import logging
import re
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import yaml
from aiohttp import ClientConnectionError, ClientSession, TCPConnector

from adapter.__main__ import _parser, main
from adapter.commands.help_texts import COMMANDS, PROGRAM, HelpText
from adapter.version import package_version
from tests.control_plane.certificates import Authority
from tests.fakes.cluster import Cluster
from tests.waiting import GIVE_UP

AUTH_CONFIG = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/m"


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Restore the logging configuration that the command changes."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_all_problems_of_an_invalid_configuration_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "config.yaml"
    file.write_text("{servng: {}, limts: {}}")

    assert main(["serve", "--config", str(file)]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "servng: unknown key; did you mean 'serving'?",
        "limts: unknown key; did you mean 'limits'?",
    ]


def test_missing_cluster_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], blocking_calls_fail
):
    blocking_calls_fail.deactivate()  # the process reads files before it serves requests
    file = tmp_path / "config.yaml"
    file.write_text("{}")

    assert main(["serve", "--config", str(file), "--kubeconfig", str(tmp_path / "nothing")]) == 1
    message = capsys.readouterr().err.splitlines()[-1]  # tasks of earlier tests may log when they are collected
    assert message.startswith("cannot load the Kubernetes client configuration from ")


def _kubeconfig(server: str) -> str:
    cluster = {"name": "c", "cluster": {"server": server}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    return yaml.safe_dump({"clusters": [cluster], "users": users, "contexts": [context], "current-context": "x"})


def test_a_port_that_is_in_use_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], blocking_calls_fail
):
    blocking_calls_fail.deactivate()  # the process reads files before it serves requests
    (tmp_path / "config.yaml").write_text("serving: {tls: {files: {certFile: tls.crt, keyFile: tls.key}}}")
    (tmp_path / "kubeconfig").write_text(_kubeconfig("http://127.0.0.1:1"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        options = ["--address", "127.0.0.1", "--port", port, "--kubeconfig", str(tmp_path / "kubeconfig")]
        assert main(["serve", "--config", str(tmp_path / "config.yaml"), *options]) == 1

    output = capsys.readouterr().err
    assert "Traceback" not in output
    assert output.splitlines()[-1] == (
        f"cannot listen on 127.0.0.1:{port}: Address already in use;"
        " stop the other process, or change serving.address or serving.port (--address, --port)"
    )


def test_default_configuration_file_may_be_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, blocking_calls_fail
):
    blocking_calls_fail.deactivate()  # the process reads files before it serves requests
    monkeypatch.setattr("adapter.commands.serve.DEFAULT_PATH", tmp_path / "config.yaml")

    assert main(["serve", "--kubeconfig", str(tmp_path / "nothing")]) == 1
    assert "Kubernetes client configuration" in capsys.readouterr().err.splitlines()[-1]

    assert main(["serve", "--config", str(tmp_path / "config.yaml")]) == 2
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize("text", [PROGRAM, *COMMANDS.values()], ids=["steadyscale", *COMMANDS])
def test_examples_in_the_help_are_valid_commands(text: HelpText):
    for command, _ in text.examples:
        program, *arguments = shlex.split(
            re.sub(r'^kubectl (?=steadyscale)|^.* \| |^eval "\$\(|\)"$| > .*', "", command)
        )
        assert program == "steadyscale"
        assert _parser().parse_args(arguments).command in COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_description_and_examples(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exited:
        main([command, "--help"])

    output = capsys.readouterr().out
    assert exited.value.code == 0
    assert COMMANDS[command].wrapped_description in output
    assert f"steadyscale {command}" in output.partition("examples:")[2]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_into_80_columns(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])

    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


def test_help_is_printed_without_a_command(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 0
    output = capsys.readouterr().out
    assert all(text.summary in output for text in COMMANDS.values())


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exited:
        main(["--version"])

    assert exited.value.code == 0
    assert capsys.readouterr().out == f"steadyscale {package_version()}\n"


@pytest.mark.parametrize(
    ("option", "value", "bounds"),
    [*(("--speed", value, "1 and 300") for value in ("0", "301", "nan", "x")), ("--port", "65536", "0 and 65535")],
)
def test_numeric_options_have_bounds(option: str, value: str, bounds: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exited:
        main(["demo", option, value])

    assert exited.value.code == 2
    assert f"{option}: must be between {bounds}, is {value}" in capsys.readouterr().err


def test_demo_reports_a_machine_without_localhost(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)

    assert main(["demo"]) == 1
    message = "localhost cannot be resolved: add the line `127.0.0.1 localhost` to /etc/hosts\n"
    assert capsys.readouterr().err == message


def test_serve_must_run_at_least_one_component(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["serve", "--config=config.yaml", "--no-adapter", "--no-autoscaler"])

    assert "--no-autoscaler: not allowed with argument --no-adapter" in capsys.readouterr().err


@asynccontextmanager
async def running(folder: Path, api: Cluster) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run ``steadyscale serve``; yield the process and its address."""
    authority = Authority.new("serving")
    cert, key = authority.server("127.0.0.1").save(folder, "serving")
    (folder / "kubeconfig").write_text(_kubeconfig(api.connection.server))
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
    while line := await asyncio.wait_for(process.stderr.readline(), GIVE_UP):
        seen.append(line)
        if (entry := yaml.safe_load(line))["msg"] == "serving":
            return int(entry["port"])
    raise AssertionError(seen)


async def until(session: ClientSession, path: str, status: int) -> None:
    """Send requests until the response has this status; before the certificate is loaded connections fail."""
    async with asyncio.timeout(GIVE_UP):
        while True:
            with suppress(ClientConnectionError):
                if (await session.get(path)).status == status:
                    return
            await asyncio.sleep(0.02)


async def test_process_becomes_ready_serves_requests_and_drains_on_sigterm(tmp_path: Path, blocking_calls_fail):
    blocking_calls_fail.deactivate()  # this test writes files and starts a process
    async with Cluster.serving() as api:
        api.reviews.tokens["good"] = {"username": "bob", "groups": []}
        api.reviews.authorize = lambda spec: spec["user"] == "bob"
        async with (
            running(tmp_path, api) as (process, url),
            ClientSession(url, connector=TCPConnector(ssl=False)) as session,
        ):
            await until(session, "/readyz", 500)  # live, but not ready before the cluster's CAs are known
            api.put(AUTH_CONFIG, {"data": {"client-ca-file": Authority.new("clients").pem}})
            await until(session, "/readyz", 200)
            response = await session.get(METRIC, headers={"Authorization": "Bearer good"})
            assert (response.status, (await response.json())["items"][0]["value"]) == (200, "1")
            assert (await session.get(METRIC)).status == 403

            process.send_signal(signal.SIGTERM)
            await until(session, "/readyz", 500)
            assert (await session.get(METRIC, headers={"Authorization": "Bearer good"})).status == 200
            assert await asyncio.wait_for(process.wait(), GIVE_UP) == 0

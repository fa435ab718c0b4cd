"""``steadyscale metric`` against the real server on loopback."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.__main__ import main
from tests.loopback import Loopback, loopback


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with loopback(tmp_path_factory.mktemp("loopback")) as running:
        (running.folder / "token").write_text("good\n")
        yield running


def read_metric(service: Loopback, *arguments: str) -> int:
    known = ["--server", service.url, "--ca-file", str(service.ca), "--token-file", str(service.folder / "token")]
    return main(["metric", *known, *arguments])


def test_trace_is_printed_as_text(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert read_metric(service, "default/my-metric", "-l", "foo in (bar)") == 0
    output = capsys.readouterr().out

    assert "metric        default/my-metric\nselector      foo in (bar)\nrule          my-metric, from config" in output
    assert "series        2 found, 1 matched\n  + {foo=bar} 1.1 (" in output
    assert "not foo in (bar): foo is 'baz'" in output
    assert "value         1100m, " in output
    assert output.endswith("HPA response  1100m (1 item)\n")


def test_unavailable_metric_has_an_exit_code_and_a_reason(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert read_metric(service, "default/refused") == 1
    output = capsys.readouterr().out

    assert "failed: query rejected" in output
    assert "error         metric 'refused': static: refused: query rejected" in output
    assert "failing       since 20" in output
    assert "HPA condition unable to get external metric default/refused/nil: unable to fetch metrics" in output


def test_similar_names_are_suggested(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert read_metric(service, "default/my-metrik") == 1

    assert "rule          none: no rule has the name 'my-metrik'\nsimilar       my-metric\n" in capsys.readouterr().out


def test_json_output(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert read_metric(service, "default/whole", "-o", "json") == 0

    assert json.loads(capsys.readouterr().out)["value"] == "2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["whole"], "'whole' does not have the form NAMESPACE/NAME"),
        (["default/whole", "-l", "a=b=c"], "400: unable to parse the label selector"),
    ],
)
def test_invalid_arguments_are_reported(
    service: Loopback, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
):
    assert read_metric(service, *arguments) == 2
    assert message in capsys.readouterr().err


def test_missing_permission_is_named(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert main(["metric", "--server", service.url, "--ca-file", str(service.ca), "default/whole"]) == 2

    assert '403: forbidden: User "system:anonymous" cannot get path "/debug/' in capsys.readouterr().err


def test_ca_is_needed_on_loopback_outside_of_a_cluster(service: Loopback, capsys: pytest.CaptureFixture[str]):
    token = str(service.folder / "token")

    assert main(["metric", "--server", service.url, "--token-file", token, "default/whole"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("cannot verify the service: cannot load the Kubernetes client config")
    assert message.endswith(
        "is not set; pass --kubeconfig, because --server does not use that of kubectl, or the CA with --ca-file\n"
    )


def test_unreachable_service_and_missing_token_file_are_named(
    service: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    ca = ("--ca-file", str(service.ca))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{free.getsockname()[1]}"
    assert main(["metric", "--server", server, *ca, "default/whole"]) == 2
    assert server in capsys.readouterr().err

    missing = tmp_path / "nothing"
    assert main(["metric", "--server", server, "--token-file", str(missing), *ca, "default/whole"]) == 2
    assert capsys.readouterr().err == f"{missing}: No such file or directory\n"


def test_server_must_be_a_url(capsys: pytest.CaptureFixture[str]):
    assert main(["metric", "--server", "localhost:6443", "default/whole"]) == 2
    assert capsys.readouterr().err == "--server: 'localhost:6443' is not a URL such as https://localhost:6443\n"


@pytest.mark.parametrize("content", [b"", b"\xff\x00"], ids=["empty", "binary"])
def test_ca_file_must_contain_a_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes):
    file = tmp_path / "ca.crt"
    file.write_bytes(content)
    assert main(["metric", "--server", "https://localhost:6443", "--ca-file", str(file), "default/whole"]) == 2
    assert capsys.readouterr().err == f"--ca-file: {file} contains no certificate in PEM format\n"

"""Authentication of the commands: token or certificate of a kubeconfig, permissions, TLS."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapter.__main__ import main
from tests.loopback import Loopback, loopback


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with loopback(tmp_path_factory.mktemp("loopback")) as running:
        yield running


@pytest.fixture(autouse=True)
def commands_may_read_files(blocking_calls_fail) -> None:
    blocking_calls_fail.deactivate()


def kubeconfig(service: Loopback, user: dict[str, Any]) -> Path:
    file = service.folder / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "far", "user": "me"}}],
        "clusters": [{"name": "far", "cluster": {"server": "https://api.invalid"}}],
        "users": [{"name": "me", "user": user}],
    }
    file.write_text(json.dumps(content))
    return file


def client_certificate(service: Loopback, name: str) -> dict[str, str]:
    certificate, key = service.credentials(name)
    return {"client-certificate": str(certificate), "client-key": str(key)}


def run(service: Loopback, user: dict[str, Any], *command: str) -> int:
    known = ["--server", service.url, "--ca-file", str(service.ca), "--kubeconfig", str(kubeconfig(service, user))]
    return main([*command, *known])


def test_token_of_the_kubeconfig_is_sent(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert run(service, {"token": "good"}, "metric", "default/whole") == 0
    assert "value         2, " in capsys.readouterr().out


def test_client_certificate_of_the_kubeconfig_is_sent(service: Loopback):
    assert run(service, client_certificate(service, "admin"), "metric", "default/whole") == 0


@pytest.mark.parametrize("command", [("explain", "shop/orders"), ("debug", "--port", "0")], ids=["explain", "debug"])
def test_missing_permission_is_reported_as_kubernetes_does(
    service: Loopback, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
):
    assert run(service, client_certificate(service, "alice"), *command) == 2
    assert capsys.readouterr().err.startswith('403: forbidden: User "alice" cannot get path "/debug/')


def test_process_without_decisions_is_reported(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert run(service, {"token": "good"}, "explain", "shop/orders") == 2
    assert "this replica has made no decisions, and the leader (unknown) did not respond" in capsys.readouterr().err

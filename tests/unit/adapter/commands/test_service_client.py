"""Who asks: a kubeconfig's user is known to the service by token or certificate, and may what the cluster says."""

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
def commands_may_read_files(nothing_blocks_the_loop) -> None:
    nothing_blocks_the_loop.deactivate()


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


def holder_of(service: Loopback, name: str) -> dict[str, str]:
    certificate, key = service.credentials(name)
    return {"client-certificate": str(certificate), "client-key": str(key)}


def ask(service: Loopback, user: dict[str, Any], *command: str) -> int:
    known = ["--server", service.url, "--ca-file", str(service.ca), "--kubeconfig", str(kubeconfig(service, user))]
    return main([*command, *known])


def test_a_kubeconfigs_token_is_shown(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert ask(service, {"token": "good"}, "metric", "default/whole") == 0
    assert "value        2, " in capsys.readouterr().out


def test_a_kubeconfigs_certificate_is_shown(service: Loopback):
    assert ask(service, holder_of(service, "admin"), "metric", "default/whole") == 0


@pytest.mark.parametrize("command", [("explain", "shop/orders"), ("debug", "--port", "0")], ids=["explain", "debug"])
def test_who_may_not_hears_it_in_kubernetes_words(
    service: Loopback, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
):
    assert ask(service, holder_of(service, "alice"), *command) == 2
    assert capsys.readouterr().err.startswith('403: forbidden: User "alice" cannot get path "/debug/')


def test_a_process_that_decides_nothing_says_so(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert ask(service, {"token": "good"}, "explain", "shop/orders") == 2
    assert "nothing was decided in this process yet: perhaps another one leads" in capsys.readouterr().err


def test_without_an_authority_loopback_is_trusted_and_nothing_else(
    service: Loopback, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    user = str(kubeconfig(service, {"token": "good"}))
    assert main(["metric", "default/whole", "--server", service.url, "--kubeconfig", user]) == 0
    monkeypatch.setattr("adapter.commands.service_client._LOOPBACK", frozenset())  # as if it were far away
    assert main(["metric", "default/whole", "--server", service.url, "--kubeconfig", user]) == 2
    assert "certificate verify failed" in capsys.readouterr().err

"""Commands without --server: errors of the API server have a next step, and the kubeconfig is that of kubectl."""

import json
import os
from pathlib import Path

import pytest

from adapter.__main__ import main
from adapter.commands.registered_service import RequestFailed
from adapter.commands.responses import decoded
from adapter.commands.user_kubeconfig import user_kubeconfig
from adapter.debug.render_metrics import metric_list_lines
from autoscaler.kube.connection import connect

UNABLE = {"kind": "Status", "code": 503, "message": "the server is currently unable to handle the request"}
FORBIDDEN = (
    b'{"kind": "Status", "code": 403, "message": "User \\"viewer\\" cannot %s resource \\"%s\\" in API group '
    b'\\"debug.steadyscale.dev\\" %s"}'
)
SHOP, CLUSTER = b'in the namespace \\"shop\\"', b"at the cluster scope"
OWN = {"kind": "Status", "code": 404, "message": "no decision for PodAutoscaler 'shop/orders'"}


@pytest.fixture(autouse=True)
def commands_may_read_files(blocking_calls_fail) -> None:
    blocking_calls_fail.deactivate()


@pytest.mark.parametrize(
    ("status", "body", "step"),
    [
        pytest.param(404, b"404 page not found\n", "is missing: apply the manifests", id="no APIService"),
        pytest.param(503, json.dumps(UNABLE).encode(), "Steadyscale does not respond", id="unavailable"),
        pytest.param(503, b"error trying to reach service: EOF", "Steadyscale does not respond", id="no connection"),
        pytest.param(403, FORBIDDEN % (b"get", b"decisions", SHOP), "role `view` in the namespace", id="decisions"),
        pytest.param(403, FORBIDDEN % (b"list", b"metrics", SHOP), "role `edit` in the namespace", id="metrics"),
        pytest.param(403, FORBIDDEN % (b"list", b"metrics", CLUSTER), "select a namespace with -n", id="all metrics"),
        pytest.param(403, FORBIDDEN % (b"get", b"views", CLUSTER), "the ClusterRole steadyscale:debug", id="page"),
        pytest.param(401, b"", "log in to the cluster again", id="credentials"),
        pytest.param(404, json.dumps(OWN).encode(), None, id="error of the service"),
        pytest.param(200, b"[]", None, id="unexpected content"),
    ],
)
def test_error_has_a_next_step(status: int, body: bytes, step: str | None):
    with pytest.raises(RequestFailed) as raised:
        decoded(status, body, is_aggregated=True)
    message, *steps = str(raised.value).splitlines()
    assert message.startswith(f"{status}: ")
    assert [step in one for one in steps] == [True] if step else steps == []


def kubeconfig(folder: Path, name: str, context: str | None) -> Path:
    file = folder / name
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.invalid"}}],
        "users": [{"name": name, "user": {"token": "t"}}],
        **({"current-context": context} if context else {}),
    }
    file.write_text(json.dumps(content))
    return file


async def test_first_current_context_of_several_kubeconfigs_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    files = [kubeconfig(tmp_path, name, context) for name, context in (("a", None), ("b", "b"), ("c", "c"))]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, [*files, tmp_path / "missing"])))
    found = user_kubeconfig(None)

    assert (await connect(found)).server == "https://b.invalid"
    assert (await connect(found, "a")).server == "https://a.invalid"


@pytest.mark.parametrize("option", ["--token-file", "--ca-file"])
def test_options_of_direct_connections_need_a_server(capsys: pytest.CaptureFixture[str], option: str):
    assert main(["metrics", option, "file"]) == 2
    assert capsys.readouterr().err == f"{option} needs --server; without it, use --kubeconfig\n"


def test_unreachable_api_server_has_a_next_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = kubeconfig(tmp_path, "a", "a")
    file.write_text(file.read_text().replace("a.invalid", "127.0.0.1:9"))
    assert main(["explain", "orders", "-n", "shop", "--kubeconfig", str(file)]) == 2
    assert capsys.readouterr().err == (
        "https://127.0.0.1:9: Connection refused; check the kubeconfig, as `kubectl version` does\n"
    )


def test_table_of_metrics_has_columns_and_escapes_control_characters():
    row = {"namespace": "shop", "metric": "depth", "selector": "", "value": "30", "ageSeconds": 150.0, "health": "ok"}
    failing = {
        **row,
        "metric": "x\x1b[2J",
        "value": None,
        "ageSeconds": None,
        "health": "failing",
        "message": "m" * 200,
    }
    lines = list(metric_list_lines({"namespace": None, "metrics": [{**row, "message": ""}, failing], "omitted": 3}))

    assert lines[1].split() == ["shop", "depth", "-", "30", "2m", "ok"]
    assert lines[2].split()[1:] == ["x\\x1b[2J", "-", "-", "-", "failing", "m" * 97 + "..."]
    assert lines[3] == "and 3 more; select a namespace with -n"
    assert list(metric_list_lines({"namespace": "shop", "metrics": [], "omitted": 0})) == [
        "no metrics are defined in the namespace shop"
    ]

"""Configuration and credentials of the user: an upgrade leaves them in force, and a rotated Secret needs no restart."""

import json
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.backends.rabbitmq_server import RabbitMqServer
from tests.docs.blocks import ROOT, blocks
from tests.docs.cluster import Reader, cluster
from tests.docs.replay import NAMESPACE, Node
from tests.integration.service import GROUP, until
from tests.manifests.rendered import CHART, helm

pytestmark = [pytest.mark.apiserver, pytest.mark.slow]

RULES = [{"name": "of-the-user", "static": [{"value": 42}]}]
NEWER_FLAG = "--horizontal-pod-autoscaler-tolerance=0.2"
"""A changed argument of the newer version, so that the node restarts the process."""


@pytest.fixture
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with cluster(tmp_path_factory.mktemp("upgrade")) as running:
        yield running


@pytest.fixture
def reader(node: Node, tmp_path: Path) -> Reader:
    """Install Steadyscale as the README does, without its example."""
    reader = Reader(tmp_path, node)
    page = blocks(ROOT / "README.md")
    first_example = next(index for index, one in enumerate(page) if "examples/first.yaml" in one.content)
    for block in page[:first_example]:
        if "cluster" in block.qualifiers or block.file:
            reader.follow(block)
    return reader


def value(node: Node, metric: str) -> str:
    """Read a metric through the API server; an empty string if that fails."""
    text = node.plane.kubectl("get", "--raw", f"{GROUP}/namespaces/default/{metric}", check=False)
    return str(json.loads(text)["items"][0]["value"]) if text.startswith("{") else ""


def is_in_force(node: Node) -> None:
    until(lambda: value(node, "of-the-user") == "42", f"the rule of the user is in force\n{node.log()}")


def configuration(node: Node) -> str:
    return str(node.plane.get("configmap/steadyscale", NAMESPACE)["data"]["config.yaml"])


def configure(node: Node, folder: Path, **settings: Any) -> None:
    """Change the configuration file of the user and apply it as the README does."""
    file = folder / "my-cluster" / "config.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **settings}))
    node.plane.kubectl("apply", f"--kustomize={folder / 'my-cluster'}")


def newer(folder: Path, deployment: str) -> Path:
    """Return a copy of manifests/ in which the process has another argument."""
    copy = shutil.copytree(ROOT / "manifests", folder / "newer")
    text = (copy / deployment).read_text()
    for old, new in (("[serve]", f"[serve, {NEWER_FLAG}]"), ("- serve\n", f"- serve\n            - {NEWER_FLAG}\n")):
        text = text.replace(old, new)
    assert NEWER_FLAG in text
    (copy / deployment).write_text(text)
    return copy


def restarted(node: Node, pid: int) -> None:
    until(lambda: node.pid not in {0, pid}, "the process was restarted")


@pytest.mark.usefixtures("reader")
def test_newer_base_leaves_the_configuration_in_force(node: Node, tmp_path: Path) -> None:
    configure(node, tmp_path, rules=RULES)
    is_in_force(node)
    before, pid = configuration(node), node.pid

    node.plane.kubectl("apply", f"--kustomize={newer(tmp_path, 'base/deployment.yaml') / 'base'}")
    restarted(node, pid)

    is_in_force(node)
    assert configuration(node) == before


def release(node: Node, *words: str) -> None:
    command = [str(helm()), *words, NAMESPACE, f"--kubeconfig={node.plane.kubeconfig('admin')}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603 - fixed commands
    assert done.returncode == 0, done.stderr


def test_newer_chart_leaves_the_configuration_in_force_also_without_the_values(node: Node, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps({"config": {"rules": RULES}}))
    release(node, "install", "steadyscale", str(CHART), "--create-namespace", f"--values={values}")
    is_in_force(node)
    before, pid = configuration(node), node.pid
    chart = str(newer(tmp_path, "helm/steadyscale/templates/deployment.yaml") / "helm" / "steadyscale")

    release(node, "upgrade", "steadyscale", chart, f"--values={values}")
    restarted(node, pid)
    is_in_force(node)
    assert configuration(node) == before

    pid = node.pid
    release(node, "upgrade", "steadyscale", str(CHART), "--set=replicas=3")  # resets the values
    restarted(node, pid)
    is_in_force(node)
    assert configuration(node) == before

    release(node, "uninstall", "steadyscale")
    assert configuration(node) == before


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMqServer]:
    server = RabbitMqServer(tmp_path_factory.mktemp("broker"))
    server.start()
    yield server
    server.stop()


@pytest.mark.broker
def test_rotated_secret_is_used_without_a_restart(
    node: Node, reader: Reader, broker: RabbitMqServer, tmp_path: Path
) -> None:
    page = blocks(ROOT / "manifests" / "README.md")
    commands = next(one for one in page if "create secret generic steadyscale-credentials" in one.content)
    create, _, set_key = commands.steps()

    def rotate(password: str) -> None:
        """Change the password in RabbitMQ, and the Secret with the documented command."""
        broker.add_user("steadyscale", password, "/")
        (tmp_path / "rabbitmq-password").write_text(f"{password}\n")
        reader.shell.run_step(commands, set_key)

    reader.shell.run_step(commands, create)
    rotate("first-password")
    backends = yaml.safe_load(next(one for one in page if one.file == "rabbitmq.yaml").content)["backends"]
    backends["rabbitmq"]["rabbitmq"]["url"] = broker.url
    rule = {"name": "orders", "backend": "rabbitmq", "parameters": {"queue": "orders"}, "interval": "1s"}
    broker.fill("orders", 3)
    configure(node, tmp_path, backends=backends, rules=[rule])
    until(lambda: value(node, "orders") == "3", f"the metric is read\n{node.log()}")
    pid = node.pid

    rotate("second-password")
    broker.fill("orders", 7)
    until(lambda: value(node, "orders") == "7", "the metric is read with the new password")

    log = node.plane.folder.joinpath("steadyscale.log").read_text()
    assert node.pid == pid
    for password in ("first-password", "second-password"):
        assert password not in log
        assert b64encode(f"steadyscale:{password}".encode()).decode() not in log

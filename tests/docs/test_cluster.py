"""The cluster commands of every page, run in order against a real API server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.control_plane import programs
from tests.control_plane.cluster import control_plane
from tests.docs.blocks import PAGES, ROOT, Block, blocks
from tests.docs.replay import DOCKER, Node, kubectl, steadyscale
from tests.docs.sandbox import Sandbox
from tests.manifests.rendered import helm

pytestmark = [pytest.mark.apiserver, pytest.mark.slow]

OLD_RULES = """\
rules:
- {seriesQuery: http_requests_total, resources: {template: <<.Resource>>}, metricsQuery: "sum(<<.Series>>)"}
externalRules:
- seriesQuery: queue_depth
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>})
- seriesQuery: '{__name__=~"^queue_.*"}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
"""
OLD = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "adapter-config", "namespace": "monitoring"}}
PREREQUISITES = {
    "migrating-from-prometheus-adapter.md": [
        (("create", "namespace", "monitoring"), None),
        (("create", "--filename=-"), json.dumps({**OLD, "data": {"config.yaml": OLD_RULES}})),
    ]
}
"""Objects that the page assumes in the cluster."""

EXAMPLES = sorted((ROOT / "manifests" / "examples").glob("*.yaml"))


@contextmanager
def cluster(folder: Path) -> Iterator[Node]:
    """Run a separate control plane, so that installed objects do not disturb other tests."""
    with control_plane(folder, programs.require()) as plane:
        node = Node(plane)
        node.start()
        try:
            yield node
        finally:
            node.stop()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with cluster(tmp_path_factory.mktemp("docs")) as running:
        yield running


def sandbox(folder: Path, node: Node) -> Sandbox:
    kubeconfig = node.plane.kubeconfig("admin")
    made = Sandbox(folder, KUBECONFIG=str(kubeconfig), HOME=str(folder))
    (folder / ".kube").mkdir()
    (folder / ".kube" / "config").write_text(kubeconfig.read_text())
    made.program("kubectl", kubectl(node))
    made.program("steadyscale", steadyscale(node))
    made.program("docker", DOCKER)
    made.program("helm", f'#!/bin/sh\nexec {helm()} "$@"\n')
    return made


def cluster_blocks(page: Path) -> list[Block]:
    return [one for one in blocks(page) if "cluster" in one.qualifiers or (one.file and "fresh" not in one.qualifiers)]


def has_cluster_commands(page: Path) -> bool:
    return any("cluster" in one.qualifiers for one in blocks(page))


def install(node: Node) -> None:
    """Install Steadyscale as the README does, for pages that assume it."""
    plane = node.plane
    plane.kubectl("apply", f"--kustomize={ROOT / 'manifests' / 'base'}")
    plane.kubectl("wait", "--for=condition=Available", "apiservice/v1beta1.external.metrics.k8s.io", "--timeout=50s")
    if not plane.kubectl("get", "namespace", "shop", "--ignore-not-found"):
        plane.kubectl("create", "namespace", "shop")


def run_page(page: Path, folder: Path, node: Node) -> None:
    shell = sandbox(folder, node)
    for words, stdin in PREREQUISITES.get(page.name, ()):
        node.plane.kubectl(*words, stdin=stdin)
    for block in cluster_blocks(page):
        try:
            shell.run(block)
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- log of the process:\n{node.log()}") from None


def test_readme_commands_work_in_an_empty_cluster(node: Node, tmp_path: Path) -> None:
    run_page(ROOT / "README.md", tmp_path, node)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES[1:] if has_cluster_commands(page)],
)
def test_page_commands_work_after_installation(page: Path, node: Node, tmp_path: Path) -> None:
    install(node)
    run_page(page, tmp_path, node)


@pytest.mark.parametrize("example", [pytest.param(one, id=one.stem) for one in EXAMPLES])
def test_api_server_accepts_every_example(example: Path, node: Node) -> None:
    install(node)
    node.plane.kubectl("apply", "--dry-run=server", "--validate=strict", f"--filename={example}")


def is_object(block: Block) -> bool:
    """Return whether the block is a Kubernetes object."""
    return (
        block.kind == "yaml"
        and not block.qualifiers
        and "apiVersion:" in block.content
        and "kind: Kustomization" not in block.content
    )


@pytest.mark.parametrize(
    "block", [pytest.param(one, id=str(one)) for page in PAGES for one in blocks(page) if is_object(one)]
)
def test_api_server_accepts_every_object_on_a_page(block: Block, node: Node) -> None:
    install(node)
    node.plane.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", stdin=block.content)


def test_installed_pods_satisfy_restricted_pod_security(node: Node) -> None:
    install(node)
    restricted = "pod-security.kubernetes.io/enforce=restricted"
    output = node.plane.kubectl(
        "label", "--dry-run=server", "--overwrite", "namespace/steadyscale", restricted, check=False
    )
    assert "Warning" not in output
    assert node.plane.get("pods", "--namespace=steadyscale")["items"]


def test_api_server_exports_the_metric_of_the_alert(node: Node) -> None:
    install(node)
    metrics = node.plane.kubectl("get", "--raw", "/metrics")
    assert 'aggregator_unavailable_apiservice{name="v1beta1.external.metrics.k8s.io"} 0' in metrics


def test_commands_for_a_fresh_cluster_work(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    fresh = [one for page in PAGES for one in blocks(page) if "fresh" in one.qualifiers]
    assert fresh
    with cluster(tmp_path_factory.mktemp("fresh")) as node:
        shell = sandbox(tmp_path, node)
        for block in fresh:
            shell.run(block)

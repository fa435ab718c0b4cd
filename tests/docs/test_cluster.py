"""The commands of every page that are for a cluster, typed one after another beside a real API server."""

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

pytestmark = pytest.mark.apiserver

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
THERE_ALREADY = {
    "migrating-from-prometheus-adapter.md": [
        (("create", "namespace", "monitoring"), None),
        (("create", "--filename=-"), json.dumps({**OLD, "data": {"config.yaml": OLD_RULES}})),
    ]
}
"""What a cluster has in which somebody reads this page."""

EXAMPLES = sorted((ROOT / "manifests" / "examples").glob("*.yaml"))


@contextmanager
def cluster(folder: Path) -> Iterator[Node]:
    """Run a control plane of our own, so that what a page installs is not in anybody's way."""
    with control_plane(folder, programs.require()) as plane:
        node = Node(plane)
        node.start()
        try:
            yield node
        finally:
            node.stop()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with cluster(tmp_path_factory.mktemp("docs")) as playing:
        yield playing


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


def of_a_cluster(page: Path) -> list[Block]:
    return [one for one in blocks(page) if "cluster" in one.words or (one.file and "fresh" not in one.words)]


def is_for_a_cluster(page: Path) -> bool:
    return any("cluster" in one.words for one in blocks(page))


def install(node: Node) -> None:
    """Do what the README's first step does, for pages that begin after it."""
    plane = node.plane
    plane.kubectl("apply", f"--kustomize={ROOT / 'manifests' / 'base'}")
    plane.kubectl("wait", "--for=condition=Available", "apiservice/v1beta1.external.metrics.k8s.io", "--timeout=50s")
    if not plane.kubectl("get", "namespace", "shop", "--ignore-not-found"):
        plane.kubectl("create", "namespace", "shop")


def typed(page: Path, folder: Path, node: Node) -> None:
    typist = sandbox(folder, node)
    for words, stdin in THERE_ALREADY.get(page.name, ()):
        node.plane.kubectl(*words, stdin=stdin)
    for block in of_a_cluster(page):
        try:
            typist.take(block)
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- the process:\n{node.log()}") from None


def test_the_steps_of_the_readme_work_in_an_empty_cluster(node: Node, tmp_path: Path) -> None:
    typed(ROOT / "README.md", tmp_path, node)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES[1:] if is_for_a_cluster(page)],
)
def test_the_steps_of_a_page_work_where_it_is_installed(page: Path, node: Node, tmp_path: Path) -> None:
    install(node)
    typed(page, tmp_path, node)


@pytest.mark.parametrize("example", [pytest.param(one, id=one.stem) for one in EXAMPLES])
def test_the_api_server_accepts_every_example(example: Path, node: Node) -> None:
    install(node)
    node.plane.kubectl("apply", "--dry-run=server", "--validate=strict", f"--filename={example}")


def is_object(block: Block) -> bool:
    """Whether an API server is to accept it; what it cannot is checked where all YAML is."""
    return (
        block.kind == "yaml"
        and not block.words
        and "apiVersion:" in block.content
        and "kind: Kustomization" not in block.content
    )


@pytest.mark.parametrize(
    "block", [pytest.param(one, id=str(one)) for page in PAGES for one in blocks(page) if is_object(one)]
)
def test_the_api_server_accepts_every_object_on_a_page(block: Block, node: Node) -> None:
    install(node)
    node.plane.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", stdin=block.content)


def test_what_is_installed_meets_the_strictest_pod_security(node: Node) -> None:
    install(node)
    strictest = "pod-security.kubernetes.io/enforce=restricted"
    said = node.plane.kubectl(
        "label", "--dry-run=server", "--overwrite", "namespace/steadyscale", strictest, check=False
    )
    assert "Warning" not in said
    assert node.plane.get("pods", "--namespace=steadyscale")["items"]


def test_the_api_server_has_the_figure_that_the_alert_is_about(node: Node) -> None:
    install(node)
    figures = node.plane.kubectl("get", "--raw", "/metrics")
    assert 'aggregator_unavailable_apiservice{name="v1beta1.external.metrics.k8s.io"} 0' in figures


def test_a_fresh_cluster_takes_what_a_page_says_of_one(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fresh = [one for page in PAGES for one in blocks(page) if "fresh" in one.words]
    assert fresh
    with cluster(tmp_path_factory.mktemp("fresh")) as node:
        typist = sandbox(tmp_path, node)
        for block in fresh:
            typist.take(block)

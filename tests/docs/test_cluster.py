"""The cluster commands of all pages, run one after another in one cluster, and the manifests on the pages."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, ROOT, Block, blocks, reading_order
from tests.docs.cluster import Reader, cluster
from tests.docs.replay import Node
from tests.docs.user_objects import changes, create_after_installation, create_before_installation, user_objects
from tests.integration.service import GROUP, until

pytestmark = [pytest.mark.apiserver, pytest.mark.slow]

EXAMPLES = sorted((ROOT / "manifests" / "examples").glob("*.yaml"))
RULE_OF_USER = "rules: [{name: of-the-user, static: [{value: 42}]}]\n"
EXAMPLE = re.compile(r"^created: \w+/(example/|/example$)")
"""The README creates an example in a namespace of its own, which other pages read."""

WORKLOADS = ("namespaces", "deployments.apps", "configmaps", "horizontalpodautoscalers", "rolebindings")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Return a cluster with Steadyscale."""
    with cluster(tmp_path_factory.mktemp("docs")) as running:
        running.plane.kubectl("apply", f"--kustomize={ROOT / 'manifests' / 'base'}")
        available = ("--for=condition=Available", "apiservice/v1beta1.external.metrics.k8s.io", "--timeout=50s")
        running.plane.kubectl("wait", *available)
        running.plane.kubectl("create", "namespace", "shop")
        running.plane.kubectl("create", "namespace", "rehearsal")
        yield running


def of_walk(block: Block) -> bool:
    """Return whether a reader who has installed Steadyscale follows the block."""
    return "cluster" in block.qualifiers or bool(block.file)


def value_of_user(node: Node) -> str:
    """Read the metric that only the configuration of the user defines."""
    return node.plane.kubectl("get", "--raw", f"{GROUP}/namespaces/shop/of-the-user", check=False)


def configure(node: Node, folder: Path) -> None:
    """Add a rule to the configuration file that the README created, and apply it as the README does."""
    with (folder / "my-cluster" / "config.yaml").open("a") as file:
        file.write(RULE_OF_USER)
    node.plane.kubectl("apply", f"--kustomize={folder / 'my-cluster'}")
    until(lambda: '"42"' in value_of_user(node), "the configuration is in force")


def test_pages_in_reading_order_change_nothing_of_the_user(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    readme, *pages = reading_order()
    assert set(pages) | {readme} == set(PAGES)
    with cluster(tmp_path_factory.mktemp("walk")) as node:
        reader = Reader(tmp_path, node)
        create_before_installation(node.plane)
        before = user_objects(node.plane, kinds=WORKLOADS)
        for block in filter(of_walk, blocks(readme)):
            reader.follow(block)
        after = user_objects(node.plane, kinds=WORKLOADS)
        assert [one for one in changes(before, after) if not EXAMPLE.search(one)] == []
        create_after_installation(node.plane)
        configure(node, tmp_path)
        before = user_objects(node.plane)
        for page in pages:
            for block in filter(of_walk, blocks(page)):
                reader.follow(block)
            if any("cluster" in block.qualifiers for block in blocks(page)):
                after = user_objects(node.plane)
                assert changes(before, after) == [], page.relative_to(ROOT)
                before = after
        until(lambda: '"42"' in value_of_user(node), "the configuration of the user is in force")
        workloads = user_objects(node.plane, kinds=WORKLOADS)
        for block in (one for page in pages for one in blocks(page) if "uninstall" in one.qualifiers):
            reader.follow(block)
        lost = [
            one for one in changes(workloads, user_objects(node.plane, kinds=WORKLOADS)) if "/steadyscale" not in one
        ]
        assert lost == []


@pytest.mark.parametrize("example", [pytest.param(one, id=one.stem) for one in EXAMPLES])
def test_api_server_accepts_every_example(example: Path, node: Node) -> None:
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
    node.plane.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", stdin=block.content)


def test_installed_pods_satisfy_restricted_pod_security(node: Node) -> None:
    restricted = "pod-security.kubernetes.io/enforce=restricted"
    output = node.plane.kubectl(
        "label", "--dry-run=server", "--overwrite", "namespace/steadyscale", restricted, check=False
    )
    assert "Warning" not in output
    assert node.plane.get("pods", "--namespace=steadyscale")["items"]


def test_api_server_exports_the_metric_of_the_alert(node: Node) -> None:
    metrics = node.plane.kubectl("get", "--raw", "/metrics")
    assert 'aggregator_unavailable_apiservice{name="v1beta1.external.metrics.k8s.io"} 0' in metrics


def test_commands_for_a_fresh_cluster_work(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    fresh = [one for page in reading_order() for one in blocks(page) if "fresh" in one.qualifiers or one.file]
    with cluster(tmp_path_factory.mktemp("fresh")) as node:
        reader = Reader(tmp_path, node)
        for block in fresh:
            reader.follow(block)

"""A cluster in which the commands of pages are run: a real control plane with a fake node."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.control_plane import programs
from tests.control_plane.cluster import control_plane
from tests.docs.blocks import Block
from tests.docs.replay import DOCKER, Node, kubectl
from tests.docs.sandbox import Sandbox
from tests.manifests.rendered import helm


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


class Reader:
    """A user who types the commands of pages in one clone of the repository."""

    def __init__(self, folder: Path, node: Node) -> None:
        kubeconfig = node.plane.kubeconfig("admin")
        self._node = node
        self.shell = Sandbox(folder, KUBECONFIG=str(kubeconfig), HOME=str(folder))
        (folder / ".kube").mkdir()
        (folder / ".kube" / "config").write_text(kubeconfig.read_text())
        self.shell.program("kubectl", kubectl(node))
        for name in ("steadyscale", "kubectl-steadyscale"):
            self.shell.program(name, f'#!/bin/sh\nexec {Path(sys.executable).with_name(name)} "$@"\n')
        self.shell.program("docker", DOCKER)
        self.shell.program("helm", f'#!/bin/sh\nexec {helm()} "$@"\n')

    def follow(self, block: Block) -> None:
        """Write the file of a block, or run its commands; an error contains the log of the process."""
        try:
            self.shell.run(block)
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- log of the process:\n{self._node.log()}") from None

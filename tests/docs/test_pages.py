"""Documentation pages: commands run, YAML is valid, links resolve."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.commands.check import check
from tests.docs.blocks import CLUSTERS, FENCE, PAGES, QUALIFIERS, ROOT, Block, blocks
from tests.docs.sandbox import Sandbox

CHECKED = {"ConfigMap", "ExternalMetric", "PodAutoscaler", "HorizontalPodAutoscaler"}
RECORDED = (
    "$ python -m bench.fleet",
    "$ python -m bench.decision_history",
    "$ steadyscale history",
    "$ python -m bench.prometheus_load",
    "$ python -m bench.snapshots",
    "$ python -m bench.scaling",
    "$ python -m bench.latency",
    "$ python -m bench.status_writes",
    "$ python -m bench.autoscaler_memory",
    "$ python3 -m tools.newcomer",
    "$ make demo",
    "$ steadyscale metric",
    "$ steadyscale explain",
    "$ kubectl get xm",
)
"""Commands whose recorded output is shown in `text` blocks."""

MAKE = """\
#!/bin/sh
# `make test` is running these tests and tests/demo runs `make demo`; here only the targets are checked.
exec /usr/bin/make --dry-run "$@"
"""

_LINK = re.compile(r"\]\(([^)#]*)(#[^)]*)?\)")


def all_blocks(kind: str = "") -> list[object]:
    return [pytest.param(one, id=str(one)) for page in PAGES for one in blocks(page) if kind in ("", one.kind)]


def local_blocks(page: Path) -> list[Block]:
    """Return the blocks that need no cluster."""
    return [one for one in blocks(page) if not one.qualifiers & CLUSTERS]


@pytest.mark.parametrize("block", all_blocks())
def test_fence_has_known_words(block: Block) -> None:
    assert block.kind in QUALIFIERS
    assert block.qualifiers <= QUALIFIERS[block.kind]
    if block.kind == "text":
        commands = [line for line in block.content.splitlines() if line.startswith("$ ")]
        assert [line for line in commands if not line.startswith(RECORDED)] == []


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_all_code_blocks_are_fenced(page: Path) -> None:
    """An indented code block would not be tested."""
    lines = FENCE.sub("", page.read_text()).splitlines()
    after_blank = [line for before, line in pairwise(lines) if not before.strip()]
    assert [line for line in after_blank if re.match(r"( {4}|\t)\S", line)] == []
    assert [line for line in lines if line.lstrip().startswith("```")] == []


def documents(block: Block) -> Iterator[Any]:
    known = {"backends": {"main": {"prometheus": {"url": "http://a"}}}}
    for one in yaml.safe_load_all(block.content):
        # A list contains rules; the backends may be in another block.
        whole = {"rules": one} if isinstance(one, list) else one
        yield {**known, **whole} if {"rules", "prometheusAdapter"} & whole.keys() and "kind" not in whole else whole


@pytest.mark.parametrize("block", all_blocks("yaml"))
def test_yaml_is_valid(block: Block, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = list(documents(block))
    assert found
    checked = [one for one in found if one.get("kind", "ConfigMap") in CHECKED]
    if "foreign" in block.qualifiers or not checked:
        return
    file = tmp_path / "block.yaml"
    file.write_text(yaml.safe_dump_all(checked))
    with capsys.disabled(), (tmp_path / "output").open("w") as out:
        code = check([file], out)
    assert code == 0, (tmp_path / "output").read_text()


_CHANGE = re.compile(r"kubectl (?:apply|create|delete|patch|replace|scale|autoscale|label|annotate|set|edit)\b.*")
_HARMLESS = re.compile(
    r"--dry-run=|--kustomize=(?:my-cluster|manifests/crds)|namespace[= ](?:steadyscale|rehearsal)\b"
    r"|steadyscale --namespace=steadyscale \|\| kubectl delete apiservice"  # only if there is no Steadyscale
)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES[1:]])
def test_commands_change_only_the_installation_and_namespaces_of_their_own(page: Path) -> None:
    """The README is an exception: it creates the first autoscaler of the user."""
    for block in (one for one in blocks(page) if "cluster" in one.qualifiers):
        commands = [step.command for step in block.steps()]
        assert [one for one in commands if _CHANGE.search(one) and not _HARMLESS.search(one)] == [], block
        if any("rehearsal" in one for one in commands):
            assert commands[0] == "kubectl create namespace rehearsal", block
            assert commands[-1] == "kubectl delete namespace rehearsal", block


@pytest.mark.parametrize("block", all_blocks("python"))
def test_python_compiles(block: Block) -> None:
    compile(block.content, str(block), "exec")


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_page_commands_work_in_order(page: Path, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.program("make", MAKE)
    for block in local_blocks(page):
        sandbox.run(block)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_links_resolve(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text()):
        if "://" in target:
            continue
        target_path = (page.parent / target).resolve() if target else page
        assert target_path.exists(), target
        if anchor:
            assert anchor[1:] in {
                slug(line) for line in target_path.read_text().splitlines() if line.startswith("#")
            }, anchor


def slug(heading: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w -]", "", heading.lstrip("# ").lower()).replace(" ", "-")


@pytest.mark.parametrize("folder", ["docs", "docs/backends"])
def test_index_lists_every_page(folder: str) -> None:
    index = (ROOT / folder / "README.md").read_text()
    names = [page.name for page in PAGES if page.parent == ROOT / folder and page.name != "README.md"]
    assert names
    assert [name for name in names if f"]({name})" not in index] == []

"""Every block of every page is what it says it is: commands run, YAML is valid, links lead somewhere."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.commands.check import check
from tests.docs.blocks import FENCE, PAGES, ROOT, WORDS, Block, blocks
from tests.docs.sandbox import Sandbox

CHECKED = {"ConfigMap", "ExternalMetric", "PodAutoscaler", "HorizontalPodAutoscaler"}
SHOWN = (
    "$ python -m bench.fleet",
    "$ python -m bench.prometheus_load",
    "$ python3 -m tools.newcomer",
    "$ make demo",
    "$ steadyscale metric",
    "$ steadyscale explain",
    "$ kubectl get xm",
)
"""Commands that stand above what they printed on some day, in some cluster; elsewhere on the pages they are typed."""

MAKE = """\
#!/bin/sh
# What `make test` does is going on just now, and `make demo` is played in tests/demo: here, that there is a way.
exec /usr/bin/make --dry-run "$@"
"""

_LINK = re.compile(r"\]\(([^)#]*)(#[^)]*)?\)")


def every(kind: str = "") -> list[object]:
    return [pytest.param(one, id=str(one)) for page in PAGES for one in blocks(page) if kind in ("", one.kind)]


def here(page: Path) -> list[Block]:
    """Give the blocks that need no cluster."""
    return [one for one in blocks(page) if not one.words & {"cluster", "fresh"}]


@pytest.mark.parametrize("block", every())
def test_a_block_says_what_it_is(block: Block) -> None:
    assert block.kind in WORDS
    assert block.words <= WORDS[block.kind]
    if block.kind == "text":
        commands = [line for line in block.content.splitlines() if line.startswith("$ ")]
        assert [line for line in commands if not line.startswith(SHOWN)] == []


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_no_block_hides_from_these_tests(page: Path) -> None:
    """Indented, Markdown would show it as a block; but nobody would read what it is, nor type it."""
    lines = FENCE.sub("", page.read_text()).splitlines()
    after_nothing = [line for before, line in pairwise(lines) if not before.strip()]
    assert [line for line in after_nothing if re.match(r"( {4}|\t)\S", line)] == []
    assert [line for line in lines if line.lstrip().startswith("```")] == []


def documents(block: Block) -> Iterator[Any]:
    known = {"backends": {"main": {"prometheus": {"url": "http://a"}}}}
    for one in yaml.safe_load_all(block.content):
        # A list is rules, to be put below those that there are; and the backends may be in another block.
        whole = {"rules": one} if isinstance(one, list) else one
        yield {**known, **whole} if "rules" in whole and "kind" not in whole else whole


@pytest.mark.parametrize("block", every("yaml"))
def test_yaml_is_valid(block: Block, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = list(documents(block))
    assert found
    ours = [one for one in found if one.get("kind", "ConfigMap") in CHECKED]
    if "theirs" in block.words or not ours:
        return
    file = tmp_path / "block.yaml"
    file.write_text(yaml.safe_dump_all(ours))
    with capsys.disabled(), (tmp_path / "said").open("w") as out:
        code = check([file], out)
    assert code == 0, (tmp_path / "said").read_text()


@pytest.mark.parametrize("block", every("python"))
def test_python_compiles(block: Block) -> None:
    compile(block.content, str(block), "exec")


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_the_commands_of_a_page_work_one_after_another(page: Path, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.program("make", MAKE)
    for block in here(page):
        sandbox.take(block)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text()):
        if "://" in target:
            continue
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), target
        if anchor:
            assert anchor[1:] in {slug(line) for line in place.read_text().splitlines() if line.startswith("#")}, anchor


def slug(heading: str) -> str:
    """Write a heading as a link names it."""
    return re.sub(r"[^\w -]", "", heading.lstrip("# ").lower()).replace(" ", "-")


@pytest.mark.parametrize("folder", ["docs", "docs/backends"])
def test_every_page_is_in_the_index(folder: str) -> None:
    index = (ROOT / folder / "README.md").read_text()
    names = [page.name for page in PAGES if page.parent == ROOT / folder and page.name != "README.md"]
    assert names
    assert [name for name in names if f"]({name})" not in index] == []

"""Parse the fenced blocks of a page. The words after the fence say how a block is tested.

=========== =========================================================================================================
`yaml`       valid YAML; with `# PATH.yaml` as its first line it is written to PATH.yaml for the commands that follow
`sh`         commands that succeed
`console`    commands after `$` that succeed, and lines that are in their output
`text`       not tested: output of a command, or a diagram
`cluster`    after `sh` or `console`: runs against a real API server
`fresh`      as `cluster`, in another cluster, without Steadyscale: an alternative to the commands of other pages
`uninstall`  as `cluster`, after all other commands of all pages
`fails`      after `sh` or `console`: the last command fails
`runs`       after `sh`: the last command runs until it is stopped
`foreign`    after `yaml`: the format of another program
=========== =========================================================================================================
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "manifests" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)
QUALIFIERS: Final = {
    "yaml": {"foreign"},
    "sh": {"cluster", "fresh", "uninstall", "fails", "runs"},
    "console": {"cluster", "fresh", "uninstall", "fails"},
    "text": set(),
    "python": set(),
    "mermaid": set(),
}
CLUSTERS: Final = frozenset({"cluster", "fresh", "uninstall"})
"""The words for blocks that need a cluster."""

_LINK: Final = re.compile(r"\]\(([\w./-]+\.md)\)")
FENCE: Final = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One command, and lines that its output must contain."""

    command: str
    prints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    kind: str
    qualifiers: frozenset[str]
    content: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str:
        """The file name in the first line, or an empty string."""
        named = re.match(r"# ([\w./-]+\.yaml)\n", self.content)
        return named[1] if named else ""

    def steps(self) -> Iterator[Step]:
        """Yield the commands of the block."""
        text = re.sub(r"\\\n\s*", "", self.content)
        lines = [line for line in text.splitlines() if line.strip()]
        if self.kind == "sh":
            yield from (Step(line) for line in lines if not line.startswith("#"))
            return
        starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            yield Step(lines[start].removeprefix("$ "), tuple(lines[start + 1 : end]))


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page."""
    text = page.read_text() if page.exists() else ""
    found = []
    for match in FENCE.finditer(text):
        kind, *qualifiers = match[1].split() or [""]
        found.append(Block(page, text[: match.start()].count("\n") + 1, kind, frozenset(qualifiers), match[2]))
    return found


def reading_order() -> list[Path]:
    """Return all pages: those of the installation, then those of the index of the documentation, in its order."""
    index = ROOT / "docs" / "README.md"
    found = [ROOT / "README.md", ROOT / "manifests" / "README.md", index]
    for page in (index.parent / target for target in _LINK.findall(index.read_text())):
        found.append(page)
        if page.name == "README.md":  # the index of a folder
            found += (page.parent / target for target in _LINK.findall(page.read_text()))
    unique = dict.fromkeys(page.resolve() for page in found)
    return [page for page in unique if page.is_relative_to(ROOT)]

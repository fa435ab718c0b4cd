"""The fenced blocks of a page, and what each is, by the words behind its fence.

=========== =========================================================================================================
`yaml`       is valid; with `# NAME.yaml` as its first line it is also the file NAME.yaml for the commands that follow
`sh`         commands, each of which succeeds
`console`    commands after `$`, each of which succeeds, and lines that are really among what they print
`text`       neither: what something prints somewhere else, or a picture
`cluster`    behind `sh` or `console`: they are for a cluster, and run against a real API server
`fresh`      likewise, for a cluster in which nothing is installed yet
`fails`      behind `sh` or `console`: the last command exits with something else than 0, as the page says
`runs`       behind `sh`: the last command goes on until it is stopped
`theirs`     behind `yaml`: somebody else's format
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
WORDS: Final = {
    "yaml": {"theirs"},
    "sh": {"cluster", "fresh", "fails", "runs"},
    "console": {"cluster", "fresh", "fails"},
    "text": set(),
    "python": set(),
    "mermaid": set(),
}
FENCE: Final = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One command, and lines that it must print."""

    command: str
    prints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    kind: str
    words: frozenset[str]
    content: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str:
        """The name of the file that it is, if its first line says so."""
        named = re.match(r"# ([\w.-]+\.yaml)\n", self.content)
        return named[1] if named else ""

    def steps(self) -> Iterator[Step]:
        """Give the commands of a block of commands."""
        text = re.sub(r"\\\n\s*", "", self.content)
        lines = [line for line in text.splitlines() if line.strip()]
        if self.kind == "sh":
            yield from (Step(line) for line in lines if not line.startswith("#"))
            return
        starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            yield Step(lines[start].removeprefix("$ "), tuple(lines[start + 1 : end]))


def blocks(page: Path) -> list[Block]:
    """Read the blocks of a page."""
    text = page.read_text() if page.exists() else ""
    found = []
    for match in FENCE.finditer(text):
        kind, *words = match[1].split() or [""]
        found.append(Block(page, text[: match.start()].count("\n") + 1, kind, frozenset(words), match[2]))
    return found

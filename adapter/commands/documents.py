"""The documents of YAML files, each with where it is from and what kind it is."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from adapter.errors import ConfigInvalid


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file."""

    file: Path
    number: int
    content: Any

    @property
    def kind(self) -> str:
        """What it says it is; empty for our own configuration, which says nothing."""
        return str(self.content.get("kind") or "") if isinstance(self.content, dict) else ""

    @property
    def where(self) -> str:
        """Say where it is from, and its name if it has one."""
        metadata = self.content.get("metadata") if isinstance(self.content, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        at = str(self.file) if self.number == 0 else f"{self.file}#{self.number + 1}"
        return f"{at} {self.kind}/{name}" if self.kind and name else at


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say about a document."""

    where: str
    text: str
    is_problem: bool = True


def documents(file: Path) -> Iterator[Document]:
    """Yield the documents of a file, the items of a List one by one; raise ``ConfigInvalid`` if it has none to read."""
    try:
        contents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigInvalid([f"{error.strerror}"]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigInvalid([f"not YAML: {' '.join(str(error).split())}"]) from error
    for number, content in enumerate(contents):
        if isinstance(content, dict) and content.get("kind") == "List" and isinstance(content.get("items"), list):
            yield from (Document(file, number, item) for item in content["items"])
        elif content is not None:
            yield Document(file, number, content)

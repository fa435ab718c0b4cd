"""Reading of YAML files as documents, and the messages of ``steadyscale check`` about them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from adapter.decoding.problem import ConfigInvalid, Problem

_CONFIG_KEYS: Final = ("rules", "backends", "serving", "auth", "limits", "log", "externalRules")
"""A data entry of a ConfigMap with one of these keys is taken for a configuration."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file."""

    file: Path
    number: int
    content: Any

    @property
    def kind(self) -> str:
        """The Kubernetes kind; empty for a Steadyscale configuration."""
        return str(self.content.get("kind") or "") if isinstance(self.content, dict) else ""

    @property
    def location(self) -> str:
        """The file, the number of the document in it, and the object's kind and name."""
        metadata = self.content.get("metadata") if isinstance(self.content, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        file = str(self.file) if self.number == 0 else f"{self.file}#{self.number + 1}"
        return f"{file} {self.kind}/{name}" if self.kind and name else file

    def configs(self) -> Iterator[tuple[str, Any]]:
        """Yield the Steadyscale or prometheus-adapter configurations in the document, with their paths."""
        if not self.kind:
            yield "", self.content
        if self.kind != "ConfigMap":
            return
        for key, text in (self.content.get("data") or {}).items():
            try:
                parsed = yaml.safe_load(text)
            except yaml.YAMLError:
                continue  # a file of another program
            if isinstance(parsed, dict) and any(part in parsed for part in _CONFIG_KEYS):
                yield f"data[{key}]", parsed


@dataclass(frozen=True, slots=True)
class CheckMessage:
    """A problem of a document, or a note about it."""

    location: str
    text: str
    is_problem: bool = True


def read_documents(file: Path) -> Iterator[Document]:
    """Yield the documents of a file, and the items of Lists; raise ``ConfigInvalid`` if the file is unreadable."""
    try:
        contents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigInvalid([Problem("", f"cannot read the file: {error.strerror}")]) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigInvalid([Problem(place, f"invalid YAML: {error.problem}")]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigInvalid([Problem("", f"invalid YAML: {' '.join(str(error).split())}")]) from error
    for number, content in enumerate(contents):
        if isinstance(content, dict) and content.get("kind") == "List" and isinstance(content.get("items"), list):
            yield from (Document(file, number, item) for item in content["items"])
        elif content is not None:
            yield Document(file, number, content)

"""Reading of YAML and JSON files as documents, and the messages of ``steadyscale check`` about them."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.decoding.yaml_loader import load_yaml

STDIN: Final = Path("-")
_CONFIG_KEYS: Final = ("rules", "backends", "serving", "auth", "limits", "log", "externalRules")
"""A data entry of a ConfigMap with one of these keys is taken for a configuration."""

_GROUPS: Final = {"PodAutoscaler": "steadyscale.dev", "ExternalMetric": "steadyscale.dev"}
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file, or one object of a cluster."""

    source: str
    """The path of the file."""

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
        source = self.source if self.number == 0 else f"{self.source}#{self.number + 1}"
        return f"{source} {self.kind}/{name}" if self.kind and name else source

    @property
    def is_of_another_group(self) -> bool:
        """Whether the object is of an API group that has a kind of the same name, such as Knative's PodAutoscaler."""
        version = self.content.get("apiVersion") if isinstance(self.content, dict) else None
        group = version.partition("/")[0] if isinstance(version, str) and "/" in version else ""
        return self.kind in _GROUPS and group not in {"", _GROUPS[self.kind]}

    @property
    def full_kind(self) -> str:
        return f"the kind {self.kind}" + (f" of {self.content['apiVersion']}" if self.is_of_another_group else "")

    @property
    def has_config_keys(self) -> bool:
        """Whether a document without a kind looks like a configuration."""
        return isinstance(self.content, dict) and any(part in self.content for part in _CONFIG_KEYS)

    def configs(self) -> Iterator[tuple[str, Any]]:
        """Yield the Steadyscale or prometheus-adapter configurations in the document, with their paths."""
        if not self.kind:
            yield "", self.content
        data = self.content.get("data") if self.kind == "ConfigMap" else None
        for key, text in data.items() if isinstance(data, dict) else ():
            try:
                parsed = yaml.safe_load(text) if isinstance(text, str) else None
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


def read_all(paths: list[Path], messages: list[CheckMessage]) -> Iterator[Document]:
    """Yield the documents of files, of the files in directories, and of stdin; add a message for an unreadable one."""
    for path in paths:
        is_directory = path.is_dir()
        for file in _files(path) if is_directory else (path,):
            try:
                documents = list(read_documents(file))
            except ConfigInvalid as error:
                messages += [CheckMessage(_name(file), message) for message in error.messages]
                continue
            # Files of other programs, such as the values of a chart, have no kind either.
            yield from (one for one in documents if one.kind or one.has_config_keys or not is_directory)


def read_documents(file: Path) -> Iterator[Document]:
    """Yield the documents of a file, and the items of Lists; raise ``ConfigInvalid`` if the file is unreadable."""
    try:
        text = sys.stdin.read() if file == STDIN else file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigInvalid([Problem("", f"cannot read the file: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        raise ConfigInvalid([Problem("", f"invalid YAML: {error}")]) from error
    for number, content in enumerate(load_yaml(text)):
        if isinstance(content, dict) and content.get("kind") == "List" and isinstance(content.get("items"), list):
            yield from (Document(_name(file), number, item) for item in content["items"])
        elif content is not None:
            yield Document(_name(file), number, content)


def _files(directory: Path) -> list[Path]:
    return sorted(file for file in directory.rglob("*") if file.suffix in _SUFFIXES and file.is_file())


def _name(file: Path) -> str:
    return "stdin" if file == STDIN else str(file)

"""The specs that ``steadyscale simulate`` compares: the autoscalers of files, and variants of the first of them."""

import copy
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from adapter.commands.documents import read_documents
from adapter.custom_resources.object_problems import autoscaler_problems
from adapter.decoding.problem import ConfigInvalid, Problem
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.wire import decode_autoscaler

_KINDS: Final = ("PodAutoscaler", "HorizontalPodAutoscaler")
_PART: Final = re.compile(r"([A-Za-z]\w*)((?:\[\d+\])*)")
_MAX_VARIANTS: Final = 12
"""More do not fit into a table or a picture."""


class Variant(NamedTuple):
    """An autoscaler to simulate, with a name for the table."""

    name: str
    autoscaler: Autoscaler


def read_variants(files: Sequence[Path], changes: Sequence[str]) -> list[Variant]:
    """Return the autoscalers of the files, and one more for each ``--set``: the first of them with these changes."""
    contents = [(str(file), each.content) for file in files for each in read_documents(file) if each.kind in _KINDS]
    if not contents:
        raise ConfigInvalid([Problem("", f"no {' or '.join(_KINDS)} in {', '.join(map(str, files))}")])
    for change in changes:
        changed = copy.deepcopy(contents[0][1])
        for assignment in _assignments(change):
            _assign(changed, assignment)
        contents.append((_short(change), changed))
    if len(contents) > _MAX_VARIANTS:
        raise ConfigInvalid([Problem("", f"{len(contents)} variants, at most {_MAX_VARIANTS} are compared")])
    problems = [problem for source, content in contents for problem in _problems(source, content)]
    if problems:
        raise ConfigInvalid(problems)
    changed_from = len(contents) - len(changes)
    names = [_name(content) if index < changed_from else source for index, (source, content) in enumerate(contents)]
    unique = [name if names.count(name) == 1 else f"{name}#{index + 1}" for index, name in enumerate(names)]
    return [Variant(name, decode_autoscaler(content)) for name, (_, content) in zip(unique, contents, strict=True)]


def _problems(source: str, content: Mapping[str, Any]) -> Iterator[Problem]:
    for problem in autoscaler_problems(content):
        yield Problem(f"{source} {problem.path}", problem.message, problem.value, problem.hint)


def _name(content: Mapping[str, Any]) -> str:
    return str(content["metadata"].get("name") or "unnamed")


def _assignments(change: str) -> Iterator[tuple[str, Any]]:
    """Yield the assignments of ``path=value,path=value``; a comma within a value is not possible."""
    for text in change.split(","):
        path, equals, value = text.partition("=")
        if not equals:
            raise ConfigInvalid([Problem(f"--set {change}", "must be PATH=VALUE, such as spec.maxReplicas=20")])
        try:
            yield path.strip(), yaml.safe_load(value)
        except yaml.YAMLError:
            raise ConfigInvalid([Problem(f"--set {change}", "the value is not YAML")]) from None


def _short(change: str) -> str:
    """Return a name for a change: the last part of each path, with its value."""
    return ", ".join(part.strip().rpartition(".")[2] for part in change.split(","))


def _assign(content: dict[str, Any], assignment: tuple[str, Any]) -> None:
    path, value = assignment
    keys: list[str | int] = []
    for part in path.split("."):
        match = _PART.fullmatch(part)
        if match is None:
            raise ConfigInvalid([Problem(f"--set {path}", "must be a path such as spec.metrics[0].external.target")])
        keys += [match[1], *(int(index) for index in re.findall(r"\d+", match[2]))]
    at: Any = content
    for key, following in itertools.pairwise(keys):
        if isinstance(key, str) and isinstance(at, dict) and at.get(key) is None and isinstance(following, str):
            at[key] = {}
        at = _item(at, key, path)
    _item(at, keys[-1], path, is_last=True)
    at[keys[-1]] = value


def _item(at: Any, key: str | int, path: str, *, is_last: bool = False) -> Any:  # noqa: ANN401 - YAML
    fits = isinstance(at, list) and key < len(at) if isinstance(key, int) else isinstance(at, dict)
    if not fits or (not is_last and isinstance(key, str) and key not in at):
        raise ConfigInvalid([Problem(f"--set {path}", f"the spec has no {key}")])
    return None if is_last else at[key]

"""Loading of the configuration file at the start, and reloading whenever the file changes.

At the start, rules with problems are left out and reported, because the other metrics must be available after a
restart. On reload, a file with any problem is rejected as a whole, and the previous configuration stays in force.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import yaml

from adapter.config.model import Config
from adapter.config.validation import problems
from adapter.decoding import documents
from adapter.decoding.problem import ConfigInvalid, Problem

_log = logging.getLogger(__name__)

DEFAULT_PATH: Final = Path("/etc/steadyscale/config.yaml")

Flags: TypeAlias = Mapping[str, Mapping[str, object]]
"""Values of command line flags by section and key; None for a flag that was not given."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, and the problems of the rules that were left out of it, by name."""

    config: Config
    invalid_rules: Mapping[str, tuple[Problem, ...]]
    invalid_in: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The namespaces of these rules, by name; a name that is missing here is invalid in all namespaces."""


@dataclass(slots=True)
class ConfigFile:
    """The path of the configuration file, and the command line flags that override its settings."""

    path: Path
    flags: Flags
    is_optional: bool = False
    """Whether the file may be missing at the start: then all settings have their defaults until it exists."""

    poll_interval: timedelta = timedelta(seconds=2)
    """How often the file is checked for changes. Polling, because an inotify watch on the file misses the update of a
    mounted ConfigMap, which replaces a symbolic link."""

    _content: bytes | None = None

    def start(self) -> Loaded:
        """Load the file for the first time; raise ``ConfigInvalid`` only for problems outside its rules."""
        self._content = self._read_bytes()
        if self.is_optional and self._content is None and not self.path.exists():
            return decode_without_invalid_rules(_with_flags({}, self.flags))
        return decode_without_invalid_rules(read_document(self.path, self.flags))

    async def follow(
        self, apply: Callable[[Config], Awaitable[None]], reject: Callable[[tuple[Problem, ...]], None]
    ) -> None:
        """Reload the file whenever it changes, until cancelled: ``apply`` a valid file, ``reject`` any other."""
        if (previous := self._content) is None:
            _log.warning("configuration file not found, using the defaults", extra={"path": str(self.path)})
        while True:
            await asyncio.sleep(self.poll_interval.total_seconds())
            content = await asyncio.to_thread(self._read_bytes)
            # A file that is still being written can be valid YAML with another meaning: wait until it stops changing.
            is_stable, previous = content == previous, content
            if content == self._content or not is_stable:
                continue
            self._content = content
            try:
                config = await asyncio.to_thread(load, self.path, self.flags)
            except ConfigInvalid as error:
                _log.error("configuration reload failed, keeping the previous one", extra={"problems": error.messages})
                reject(error.problems)
            else:
                _log.info("configuration reloaded", extra={"rules": len(config.rules)})
                await apply(config)

    def _read_bytes(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except OSError:
            return None


def load(path: Path, flags: Flags) -> Config:
    """Load a configuration file, overridden by flags; raise ``ConfigInvalid`` with all its problems."""
    return decode(read_document(path, flags))


def read_document(path: Path, flags: Flags) -> Any:  # noqa: ANN401 - any document
    """Return the document of a configuration file, overridden by flags; raise ``ConfigInvalid`` if it is not YAML."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigInvalid([Problem(str(path), str(error.strerror))]) from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: not UTF-8, or an impossible date such as 2024-13-01
        raise ConfigInvalid([Problem(str(path), f"not YAML: {' '.join(str(error).split())}")]) from error
    except RecursionError:  # PyYAML composes a document recursively
        raise ConfigInvalid(
            [Problem(str(path), f"must not be nested deeper than {documents.MAX_DEPTH} levels")]
        ) from None
    return _with_flags({} if document is None else document, flags)


def _with_flags(document: Any, flags: Flags) -> Any:  # noqa: ANN401 - any document
    for section, keys in flags.items() if isinstance(document, dict) else ():
        if given := {key: flag for key, flag in keys.items() if flag is not None}:
            document[section] = {**(document.get(section) or {}), **given}
    return document


def decode(document: object) -> Config:
    """Return the configuration of a document; raise ``ConfigInvalid`` with all its problems."""
    config = documents.decode(document, Config)
    if found := list(problems(config)):
        raise ConfigInvalid(found)
    return config


def decode_without_invalid_rules(document: Any) -> Loaded:  # noqa: ANN401 - any document
    """Return the configuration of a document without its invalid rules; raise ``ConfigInvalid`` for other problems."""
    invalid: dict[int, list[Problem]] = {}
    try:
        config = documents.decode(document, Config)
    except ConfigInvalid as error:
        invalid = _by_rule(error.problems)
        valid = [rule for index, rule in enumerate(document["rules"]) if index not in invalid]
        config = documents.decode({**document, "rules": valid}, Config)
    indexes = [index for index in range(len(config.rules) + len(invalid)) if index not in invalid]
    invalid |= _by_rule(problems(config, indexes))
    rules = tuple(rule for index, rule in zip(indexes, config.rules, strict=True) if index not in invalid)
    by_name: dict[str, tuple[Problem, ...]] = {}
    for index, found in sorted(invalid.items()):
        name = _rule_name(document["rules"][index], index)
        by_name[name] = (*by_name.get(name, ()), *found)
    named = [(_rule_name(document["rules"][index], index), document["rules"][index]) for index in invalid]
    return Loaded(msgspec.structs.replace(config, rules=rules), by_name, _restricted(named))


def _restricted(rules: Iterable[tuple[str, object]]) -> dict[str, frozenset[str]]:
    """Return the namespaces of rules by name, without the names of rules for all namespaces."""
    found: dict[str, frozenset[str]] = {}
    unrestricted = set[str]()
    for name, rule in rules:
        namespaces = rule.get("namespaces") if isinstance(rule, dict) else None
        if isinstance(namespaces, list) and namespaces and all(isinstance(each, str) for each in namespaces):
            found[name] = found.get(name, frozenset()) | frozenset(namespaces)
        else:
            unrestricted.add(name)
    return {name: namespaces for name, namespaces in found.items() if name not in unrestricted}


def _by_rule(found: Iterable[Problem]) -> dict[int, list[Problem]]:
    """Group problems by the index of the rule; raise ``ConfigInvalid`` if some are not problems of a rule."""
    by_rule: dict[int, list[Problem]] = {}
    elsewhere: list[Problem] = []
    for problem in found:
        match = re.match(r"rules\[(\d+)\]", problem.path)
        (elsewhere if match is None else by_rule.setdefault(int(match[1]), [])).append(problem)
    if elsewhere:
        raise ConfigInvalid(elsewhere)
    return by_rule


def _rule_name(rule: object, index: int) -> str:
    name = rule.get("name") if isinstance(rule, dict) else None
    return name if isinstance(name, str) and name else f"rules[{index}]"

"""The configuration file while the process lives: read at the start, and again whenever it changes.

At the start a rule that makes no sense is left out and told, because the others must be served after a restart, too.
Later a file with any problem at all is refused as a whole, and the one before stays in force.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from adapter.config import model
from adapter.config.model import Config
from adapter.errors import ConfigInvalid

_log = logging.getLogger(__name__)
_OF_A_RULE: Final = re.compile(r"rules\[(\d+)\]")

Flags = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, and the rules that are not in it because they make no sense, by name, with their problems."""

    config: Config
    broken: Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class ConfigFile:
    """Where the configuration is, and the flags that lie over it."""

    path: Path
    flags: Flags
    every: timedelta = timedelta(seconds=2)
    """How often to look for changes. A mounted ConfigMap changes by turning a link over, which a watch would miss."""

    _known: bytes | None = None

    def start(self) -> Loaded:
        """Read it for the first time; only a file that is wrong outside its rules is refused."""
        self._known = self._content()
        return without_bad_rules(model.read(self.path, self.flags))

    async def follow(self, use: Callable[[Config], Awaitable[None]], refuse: Callable[[tuple[str, ...]], None]) -> None:
        """Read it again whenever it changes, for ever: ``use`` what makes sense, ``refuse`` what does not."""
        before = self._known
        while True:
            await asyncio.sleep(self.every.total_seconds())
            content = await asyncio.to_thread(self._content)
            # Whoever is still writing must be let finish: half a file may make sense, and mean something else.
            is_finished, before = content == before, content
            if content != self._known and is_finished:
                self._known = content
                await self._look(use, refuse)

    async def _look(self, use: Callable[[Config], Awaitable[None]], refuse: Callable[[tuple[str, ...]], None]) -> None:
        try:
            changed = await asyncio.to_thread(model.load, self.path, self.flags)
        except ConfigInvalid as error:
            _log.error("configuration not reloaded; the old one stays", extra={"problems": error.problems})
            refuse(error.problems)
        else:
            _log.info("configuration reloaded", extra={"rules": len(changed.rules)})
            await use(changed)

    def _content(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except OSError:
            return None


def without_bad_rules(document: object) -> Loaded:
    """Make a configuration of a document, leaving out rules with problems; raise ``ConfigInvalid`` for any other."""
    broken: dict[str, tuple[str, ...]] = {}
    rules = document.get("rules") if isinstance(document, dict) else None
    left = list(range(len(rules))) if isinstance(rules, list) else []
    while True:
        try:
            return Loaded(model.decode(document), broken)
        except ConfigInvalid as error:
            outside = [problem for problem in error.problems if not _OF_A_RULE.match(problem)]
            if outside or not isinstance(document, dict) or not isinstance(rules, list):
                raise ConfigInvalid(outside or error.problems) from None
            told = [_OF_A_RULE.sub(lambda rule: f"rules[{left[int(rule[1])]}]", each) for each in error.problems]
        for number in sorted({_number(problem) for problem in told}):
            broken[_name(rules[number], number)] = tuple(each for each in told if _number(each) == number)
            left.remove(number)
        document = {**document, "rules": [rules[number] for number in left]}


def _number(problem: str) -> int:
    """Say which rule a problem is of."""
    found = _OF_A_RULE.match(problem)
    return int(found[1]) if found else -1


def _name(rule: object, number: int) -> str:
    name = rule.get("name") if isinstance(rule, dict) else None
    return name if isinstance(name, str) and name else f"rules[{number}]"

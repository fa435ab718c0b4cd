"""prometheus-adapter's files while the process lives: read again when they change, their series looked up periodically.

A metric whose series' name stands in the file is served at once. The others are found by asking Prometheus, one
question for each distinct series query; a question that fails leaves what is known of it, and the others, alone.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError, BackendUnreachable
from adapter.metrics.fetcher import Fetcher
from adapter.rules.prometheus_adapter.conversion import ImportedFile, RuleDefaults, convert_rules, parse_file
from adapter.rules.prometheus_adapter.migration_notes import MigrationNote
from adapter.rules.prometheus_adapter.settings import PrometheusAdapterFile
from adapter.rules.rule_registry import RuleRegistry

_log = logging.getLogger(__name__)
_LOOK_EVERY: Final = 5.0
_LEVELS: Final = {"error": logging.ERROR, "warning": logging.WARNING, "note": logging.INFO}


@dataclass(slots=True)
class Kept:
    """One file, and what is known of it."""

    file: PrometheusAdapterFile
    text: str | None = None
    imported: ImportedFile = field(default_factory=ImportedFile)
    known: Mapping[str, frozenset[str]] = field(default_factory=dict)
    trouble: Mapping[str, str] = field(default_factory=dict)
    """Series queries that failed when last asked, and why; the file itself under the empty query."""

    @property
    def unanswered(self) -> frozenset[str]:
        """The questions that failed or found nothing: asked again soon, because someone may be waiting for a name."""
        return frozenset(each for each in self.imported.discovery_queries if each in self.trouble or not self.known.get(each))


class Imports:
    """All files that the configuration names."""

    def __init__(self, book: RuleRegistry, fetcher: Fetcher, files: tuple[PrometheusAdapterFile, ...]) -> None:
        self._book = book
        self._fetcher = fetcher
        self._changed = asyncio.Event()
        self.kept = tuple(map(Kept, files))

    @property
    def findings(self) -> dict[str, tuple[MigrationNote, ...]]:
        """What is to be known about the rules of each file."""
        return {kept.file.file: kept.imported.notes for kept in self.kept}

    def use(self, files: tuple[PrometheusAdapterFile, ...]) -> None:
        """Go over to other files; those that stay keep what is known of them."""
        before = {kept.file: kept for kept in self.kept}
        self.kept = tuple(before.get(file) or Kept(file) for file in files)
        for gone in {kept.file.file for kept in before.values()} - {file.file for file in files}:
            self._book.set_imported_rules(gone, ())
        self._changed.set()

    async def run(self) -> None:
        """Keep all files, for ever."""
        while True:
            self._changed.clear()
            keeping = [asyncio.create_task(self._keep(kept), name=f"import {kept.file.file}") for kept in self.kept]
            try:
                await self._changed.wait()
            finally:
                for task in keeping:
                    task.cancel()
                await asyncio.gather(*keeping, return_exceptions=True)

    async def _keep(self, kept: Kept) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            is_new = await self._read(kept)
            if is_new or loop.time() >= due:
                self._serve(kept)  # what needs no asking, before the asking
                await self._look_up(kept, kept.imported.discovery_queries)
                due = loop.time() + kept.file.relist_interval.total_seconds()
            else:
                await self._look_up(kept, kept.unanswered)
            self._serve(kept)
            await asyncio.sleep(min(_LOOK_EVERY, max(due - loop.time(), 0.01)))

    async def _read(self, kept: Kept) -> bool:
        """Read a file; say whether it is another than before. One that makes no sense leaves the old one in force."""
        try:
            text = await asyncio.to_thread(Path(kept.file.file).read_text, "utf-8")
            if text == kept.text:
                return False
            imported = parse_file(text, strict_discovery=kept.file.strict_discovery)
        except (OSError, UnicodeDecodeError, ConfigInvalid) as error:
            why = error.message if isinstance(error, ConfigInvalid) else type(error).__name__
            self._note(kept, "", f"cannot be read: {why}")
            return False
        self._note(kept, "", "")
        kept.text, kept.imported = text, imported
        for finding in imported.notes:
            about = {"file": kept.file.file, "path": finding.path, "finding": finding.text}
            _log.log(_LEVELS[finding.level], "imported rule", extra=about)
        return True

    async def _look_up(self, kept: Kept, questions: frozenset[str]) -> None:
        asked = sorted(questions)
        found = await asyncio.gather(*(self._names(kept, question) for question in asked))
        known = {question: names for question, names in zip(asked, found, strict=True) if names is not None}
        kept.known = {key: names for key, names in {**kept.known, **known}.items() if key in kept.imported.discovery_queries}

    async def _names(self, kept: Kept, question: str) -> frozenset[str] | None:
        backend, file = self._fetcher.backends.get(kept.file.backend), kept.file
        try:
            names = getattr(backend, "names", None)
            if names is None:
                raise BackendUnreachable("there is no Prometheus of that name")
            found: frozenset[str] = await names(question, file.max_age or file.relist_interval, file.deadline)
        except BackendError as error:
            self._note(kept, question, f"{error.failure.value}: {error.message}")
            return None
        self._note(kept, question, "")
        return found

    def _serve(self, kept: Kept) -> None:
        file = kept.file
        defaults = RuleDefaults(file.backend, file.interval, file.deadline, file.max_sample_age)
        self._book.set_imported_rules(file.file, convert_rules(kept.imported, kept.known, defaults))

    def _note(self, kept: Kept, question: str, why: str) -> None:
        """Remember what is wrong, and tell it once."""
        if why and kept.trouble.get(question) != why:
            _log.warning("import", extra={"file": kept.file.file, "series_query": question, "error": why})
        others = {key: text for key, text in kept.trouble.items() if key != question}
        kept.trouble = {**others, question: why} if why else others

"""Rules of prometheus-adapter files: the files are read again when they change, their series discovered periodically.

A rule whose ``seriesQuery`` names a single series is served at once. Other rules need the names of the series from
Prometheus, with one request per distinct series query. A failed request keeps the names that are already known.
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
from adapter.rules.prometheus_adapter.conversion import ImportedFile, convert_rules, parse_file
from adapter.rules.prometheus_adapter.settings import PrometheusAdapterFile
from adapter.rules.rule_registry import RuleRegistry

_log = logging.getLogger(__name__)
_POLL_SECONDS: Final = 5.0
_LEVELS: Final = {"error": logging.ERROR, "warning": logging.WARNING, "note": logging.INFO}


@dataclass(slots=True)
class WatchedFile:
    """One file, its content and the series that were discovered for it."""

    settings: PrometheusAdapterFile
    text: str | None = None
    imported: ImportedFile = field(default_factory=ImportedFile)
    series_names: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Names of discovered series, by series query."""

    errors: Mapping[str, str] = field(default_factory=dict)
    """The error of each series query that failed when last sent; that of the file itself under the empty key."""

    @property
    def unresolved(self) -> frozenset[str]:
        """The series queries that failed or found nothing; repeated soon, because their metrics are missing."""
        queries = self.imported.discovery_queries
        return frozenset(query for query in queries if query in self.errors or not self.series_names.get(query))


class ImportedRules:
    """Updates the imported rules of a registry from the files of the configuration, while ``run`` is running."""

    def __init__(self, registry: RuleRegistry, fetcher: Fetcher, files: tuple[PrometheusAdapterFile, ...]) -> None:
        self._registry = registry
        self._fetcher = fetcher
        self._changed = asyncio.Event()
        self.files = tuple(map(WatchedFile, files))

    def set_files(self, files: tuple[PrometheusAdapterFile, ...]) -> None:
        """Replace the files; an unchanged entry keeps its content and series."""
        before = {file.settings: file for file in self.files}
        self.files = tuple(before.get(settings) or WatchedFile(settings) for settings in files)
        for removed in {settings.file for settings in before} - {settings.file for settings in files}:
            self._registry.set_imported_rules(removed, ())
        self._changed.set()

    async def run(self) -> None:
        while True:
            self._changed.clear()
            tasks = [asyncio.create_task(self._watch(file), name=f"import {file.settings.file}") for file in self.files]
            try:
                await self._changed.wait()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, file: WatchedFile) -> None:
        loop = asyncio.get_running_loop()
        next_discovery = loop.time()
        while True:
            has_changed = await self._read(file)
            if has_changed or loop.time() >= next_discovery:
                self._publish(file)  # rules that need no discovery are available before the requests
                await self._discover(file, file.imported.discovery_queries)
                next_discovery = loop.time() + file.settings.relist_interval.total_seconds()
            else:
                await self._discover(file, file.unresolved)
            self._publish(file)
            await asyncio.sleep(min(_POLL_SECONDS, max(next_discovery - loop.time(), 0.01)))

    async def _read(self, file: WatchedFile) -> bool:
        """Read a file and return whether it changed; an invalid file leaves the previous content in force."""
        try:
            text = await asyncio.to_thread(Path(file.settings.file).read_text, "utf-8")
            if text == file.text:
                return False
            imported = parse_file(text, strict_discovery=file.settings.strict_discovery)
        except (OSError, UnicodeDecodeError, ConfigInvalid) as error:
            reason = error.message if isinstance(error, ConfigInvalid) else type(error).__name__
            self._set_error(file, "", f"cannot be read: {reason}")
            return False
        self._set_error(file, "", "")
        file.text, file.imported = text, imported
        for note in imported.notes:
            fields = {"file": file.settings.file, "path": note.path, "note": note.text}
            _log.log(_LEVELS[note.level], "imported rule", extra=fields)
        return True

    async def _discover(self, file: WatchedFile, series_queries: frozenset[str]) -> None:
        queries = sorted(series_queries)
        results = await asyncio.gather(*(self._series_names(file, query) for query in queries))
        found = {query: names for query, names in zip(queries, results, strict=True) if names is not None}
        known = {**file.series_names, **found}
        file.series_names = {query: known[query] for query in file.imported.discovery_queries if query in known}

    async def _series_names(self, file: WatchedFile, series_query: str) -> frozenset[str] | None:
        backend, settings = self._fetcher.backends.get(file.settings.backend), file.settings
        try:
            discover = getattr(backend, "names", None)
            if discover is None:
                raise BackendUnreachable(f"no Prometheus backend {settings.backend!r}")
            max_age = settings.max_age or settings.relist_interval
            names: frozenset[str] = await discover(series_query, max_age, settings.deadline)
        except BackendError as error:
            self._set_error(file, series_query, f"{error.failure.value}: {error.message}")
            return None
        self._set_error(file, series_query, "")
        return names

    def _publish(self, file: WatchedFile) -> None:
        settings = file.settings
        rules = convert_rules(file.imported, file.series_names, settings)
        self._registry.set_imported_rules(settings.file, rules, file.imported.refusals(file.errors))

    def _set_error(self, file: WatchedFile, series_query: str, error: str) -> None:
        """Store the error of a series query, and log it once; an empty text clears it."""
        if error and file.errors.get(series_query) != error:
            fields = {"file": file.settings.file, "series_query": series_query, "error": error}
            _log.warning("import of prometheus-adapter rules failed", extra=fields)
        others = {query: text for query, text in file.errors.items() if query != series_query}
        file.errors = {**others, series_query: error} if error else others

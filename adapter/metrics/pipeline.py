"""Construction of the reader with its backends and rules, and their replacement when the configuration changes."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from adapter.backends.backend import Backend
from adapter.backends.configuration import BackendEntry, price_per_day, selection
from adapter.backends.loader import import_backend
from adapter.backends.settings import BackendSettings
from adapter.backends.static import StaticBackend
from adapter.config.loading import Loaded
from adapter.config.model import Config
from adapter.metrics.comparison import Comparisons
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.metrics.tenant_budgets import TenantBudgets
from adapter.rules.rule import STATIC
from adapter.rules.rule_registry import RuleRegistry
from adapter.telemetry import Telemetry
from autoscaler.ports import Clock

_log = logging.getLogger(__name__)

LIVE_SETTINGS: Final = frozenset({"backends", "rules", "prometheus_adapter", "delegate", "tenant_limits"})
"""The sections of the configuration that take effect when the file is reloaded; all others need a restart."""

BackendFactory: TypeAlias = Callable[[str, BackendSettings, Clock], Backend]
"""Opens a backend, given its name, its settings and a clock."""


class MetricPipeline:
    """The reader and everything that it reads from."""

    def __init__(self, loaded: Loaded, open_backend: BackendFactory, clock: Clock, telemetry: Telemetry) -> None:
        self._open_backend = open_backend
        self._clock = clock
        self._config = loaded.config
        for name, problems in loaded.invalid_rules.items():
            _log.error("invalid rule ignored", extra={"rule": name, "problems": [*map(str, problems)]})
        self.registry = RuleRegistry(loaded.config.rules, loaded.invalid_rules, loaded.invalid_in)
        opened = {name: self._open(name, entry) for name, entry in loaded.config.backends.items()}
        self.fetcher = Fetcher(
            {STATIC: StaticBackend(clock), **opened},
            clock,
            telemetry.record_query,
            budgets=TenantBudgets(lambda: self._config.tenant_limits, telemetry.record_refused_query),
            max_connections=self._max_connections,
            has_adaptive_interval=self._has_adaptive_interval,
        )
        sources = Sources(
            self.fetcher, telemetry.cache_read_counter("snapshots"), telemetry.cache_read_counter("queries")
        )
        self.comparisons = Comparisons(
            sources.query_cache, clock, lambda: self._config.delegate, telemetry.record_comparison
        )
        self.reader = MetricReader(
            self.registry,
            sources,
            clock,
            delegate=lambda: self._config.delegate,
            price_per_day=lambda rule: price_per_day(rule, self._config.backends.get(rule.backend)),
            selection=lambda rule: selection(rule, self._config.backends.get(rule.backend)),
            on_read=self.comparisons.on_read,
        )

    async def apply(self, config: Config) -> None:
        """Replace the live settings by those of a new configuration; log the others that changed."""
        before, self._config = self._config, config
        if config.backends != before.backends:
            await self._replace_backends(before.backends, config.backends)
        self.registry.set_file_rules(config.rules)
        fixed = [name for name in config.__struct_fields__ if name not in LIVE_SETTINGS]
        if changed := [name for name in fixed if getattr(config, name) != getattr(before, name)]:
            _log.warning("changed settings need a restart to take effect", extra={"settings": changed})

    async def aclose(self) -> None:
        await self.comparisons.aclose()
        await self.reader.sources.aclose()

    async def _replace_backends(self, before: Mapping[str, BackendEntry], after: Mapping[str, BackendEntry]) -> None:
        """Open new and changed backends, and close removed and changed ones; the others keep their connections."""
        unchanged = {name for name, entry in after.items() if before.get(name) == entry}
        for name in after.keys() - unchanged:
            await asyncio.to_thread(import_backend, after[name].settings)
        old = dict(self.fetcher.backends)
        opened = {name: old[name] if name in unchanged else self._open(name, entry) for name, entry in after.items()}
        self.fetcher.backends = {STATIC: old[STATIC], **opened}
        closed = set(before) - unchanged
        self.reader.drop_backends(closed)
        for name in closed:
            await old[name].aclose()

    def _max_connections(self, backend: str) -> int | None:
        entry = self._config.backends.get(backend)
        return None if entry is None else getattr(entry.settings, "max_connections", None)

    def _has_adaptive_interval(self, backend: str) -> bool:
        entry = self._config.backends.get(backend)
        return entry is not None and entry.settings.has_adaptive_interval

    def _open(self, name: str, entry: BackendEntry) -> Backend:
        return self._open_backend(name, entry.settings, self._clock)
